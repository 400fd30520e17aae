// Token files and the sampler; learning rates; event files and metrics.
#include "train/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>

#include "kernels/types/crc32c.h"
#include "tests/folder.h"
#include "tests/train/megatron.h"
#include "tests/why.h"
#include "train/config/optimizer_config.h"
#include "train/trainer/metrics_log.h"
#include "train/trainer/tensorboard_events.h"

namespace trellis::train {
namespace {

namespace fs = std::filesystem;

TEST(Tokens, OfTextAndNumbersAndMegatron) {
  const Folder folder;
  const TokenFile text(folder.put("a.txt", "A\xFFz"), 0);
  EXPECT_EQ(text.tokens(), 3U);
  EXPECT_EQ(text.at(1), 255);
  const TokenFile narrow(folder.put("b.bin", bytes_of<std::uint16_t>({7, 65535})), 2);
  EXPECT_EQ(narrow.at(1), 65535);
  EXPECT_THROW(TokenFile(folder.path() / "b.bin", 0), std::invalid_argument);
  EXPECT_THROW(TokenFile(folder.put("c.bin", "abc"), 2), std::invalid_argument);
  folder.put("d.bin", bytes_of<std::int32_t>({5, 6, 7}));
  folder.put("d.idx", index_of(4, 4, {1, 2}));
  const TokenFile megatron(folder.path() / "d", 0);
  EXPECT_EQ(megatron.tokens(), 3U);
  EXPECT_EQ(megatron.at(2), 7);
  folder.put("d.idx", index_of(4, 4, {1, 1}));
  EXPECT_THROW(TokenFile(folder.path() / "d.bin", 0), std::invalid_argument);
  folder.put("d.idx", index_of(6, 4, {1, 2}));
  EXPECT_THROW(TokenFile(folder.path() / "d.bin", 0), std::invalid_argument);
  EXPECT_THROW(TokenFile(folder.path() / "none.txt", 0), std::system_error);
}

std::string refusal_of(const fs::path& path) {
  return why<std::exception>([&] { TokenFile(path, 2); });
}

TEST(Tokens, OtherKindsOfFilesAreNamed) {
  const Folder folder;
  const std::pair<const char*, std::string> all[] = {{"a Parquet file", "PAR1\x15\x04"},
                                                     {"an Arrow file", std::string("ARROW1\0\0", 8)},
                                                     {"packed by gzip", "\x1F\x8B\x08"},
                                                     {"a NumPy array", "\x93NUMPY\x01"},
                                                     {"Megatron's index", index_of(4, 4, {1})}};
  for (const auto& [words, bytes] : all) {
    const fs::path path = folder.put("data", bytes);
    EXPECT_NE(refusal_of(path).find(path.string() + " is " + words), std::string::npos) << refusal_of(path);
  }
  EXPECT_EQ(refusal_of(folder.put("short", "PA")), "");
  folder.put("set/data-00000.arrow", "x");
  EXPECT_NE(refusal_of(folder.path() / "set").find("set is a folder of Arrow files: expected a file"),
            std::string::npos);
  folder.put("empty/x", "x");
  EXPECT_NE(refusal_of(folder.path() / "empty").find("empty is a folder: expected a file"), std::string::npos);
  folder.put("half.idx", index_of(4, 4, {1}));
  for (const char* name : {"half", "half.bin"})
    EXPECT_NE(refusal_of(folder.path() / name).find("half.bin is missing: expected the tokens of"), std::string::npos)
        << refusal_of(folder.path() / name);
  EXPECT_NE(refusal_of("/dev/null").find("/dev/null is no regular file"), std::string::npos);
}

TEST(Tokens, AFileThatIsCutShortIsAnError) {
  const Folder folder;
  for (const std::size_t width : {2, 4}) {
    const fs::path path = folder.put("a.bin", std::string(40'000, 'a'));
    std::vector<std::unique_ptr<TokenFile>> files;
    files.push_back(std::make_unique<TokenFile>(path, width));
    const Sampler sampler(std::move(files), 100, 1);
    fs::resize_file(path, 100);
    std::vector<std::int32_t> tokens(100);
    const std::string said = why<std::runtime_error>([&] {
      for (std::uint64_t i = 0; i < sampler.samples(); ++i) sampler.read(i, {.tokens = tokens.data()});
    });
    EXPECT_EQ(said, path.string() + " was cut short while it was in use: it has 100 bytes, and had 40000");
  }
}

TEST(Tokens, ContentsAreKnownAgain) {
  const Folder folder;
  const auto identity = [&](const std::string& bytes) { return TokenFile(folder.put("a.txt", bytes), 0).identity(); };
  const DataFile known = identity("123456789");
  EXPECT_EQ(known.path, (folder.path() / "a.txt").string());
  EXPECT_EQ(known.bytes, 9U);
  EXPECT_EQ(known.checksum, 0xE306'9283U) << "CRC-32C";
  EXPECT_NE(identity("123456788").checksum, known.checksum);
  const std::string large(3'000'000, 'x');  // more than is read at once
  EXPECT_EQ(identity(large).checksum, kernels::crc32c(std::as_bytes(std::span(large))));
}

TEST(Tokens, OfPromptsDoNotCount) {
  const Folder folder;
  std::vector<std::unique_ptr<TokenFile>> files;
  files.push_back(std::make_unique<TokenFile>(
      folder.put("a.jsonl", "{\"prompt\": \"ab\", \"response\": \"cd\"}\n\n{\"response\": \"f\", \"prompt\": \"e\"}\n"),
      0));
  ASSERT_EQ(files[0]->tokens(), 8U);  // abcd, ef, and two ends of lines
  const Sampler sampler(std::move(files), 7, 1);
  std::int32_t tokens[7], labels[7];
  sampler.read(0, {tokens, labels});
  const std::int32_t expected[7] = {-100, 'c', 'd', '\n', -100, 'f', '\n'};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(labels[i], expected[i]) << i;
  EXPECT_THROW(TokenFile(folder.put("b.jsonl", "{\"prompt\": 3}\n"), 0), std::invalid_argument);
}

TEST(Tokens, APermutationOfAnyLength) {
  for (std::uint64_t n : {1ULL, 2ULL, 3ULL, 17ULL, 256ULL, 1000ULL}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < n; ++i) seen.insert(permuted(i, n, 42));
    EXPECT_EQ(seen.size(), n);
    EXPECT_EQ(*seen.rbegin(), n - 1);
  }
}

TEST(Tokens, AnEpochHasEverySampleOnceInAnOrderOfItsOwn) {
  const Folder folder;
  std::string letters;
  for (int i = 0; i < 41; ++i) letters += static_cast<char>(i);
  std::vector<std::unique_ptr<TokenFile>> files;
  for (const char* name : {"a.txt", "b.txt"})
    files.push_back(std::make_unique<TokenFile>(folder.put(name, letters), 0));
  const Sampler sampler(std::move(files), 4, 3);
  ASSERT_EQ(sampler.samples(), 20U);
  std::vector<std::uint64_t> epochs[2];
  for (std::uint64_t i = 0; i < 40; ++i) epochs[i / 20].push_back(sampler.place(i));
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto& epoch : epochs) EXPECT_EQ(std::set<std::uint64_t>(epoch.begin(), epoch.end()).size(), 20U);
  std::int32_t sample[4];
  sampler.read(7, {.tokens = sample});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(sample[i], static_cast<std::int32_t>(sampler.place(7) % 10 * 4) + i);
  sampler.check(41);
  EXPECT_THROW(sampler.check(40), std::invalid_argument);
}

TEST(LearningRate, WarmsUpAndFalls) {
  OptimizerConfig o;
  o.learning_rate = 1;
  const ScheduleConfig linear{.name = "LinearAnnealingWithWarmUp", .warmup_steps = 4, .max_steps = 12};
  EXPECT_EQ(learning_rate(o, linear, 1, 0), 0);
  EXPECT_EQ(learning_rate(o, linear, 3, 0), 0.5);
  EXPECT_EQ(learning_rate(o, linear, 5, 0), 1);
  EXPECT_EQ(learning_rate(o, linear, 9, 0), 0.5);
  EXPECT_EQ(learning_rate(o, linear, 13, 0), 0);
  const ScheduleConfig cosine{
      .name = "CosineAnnealing", .warmup_steps = 0, .max_steps = 10, .constant_steps = 2, .min_lr = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate(o, cosine, 5, 0), 0.6);
  EXPECT_DOUBLE_EQ(learning_rate(o, cosine, 9, 0), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(o, cosine, 10, 0), 0.2);
}

// The data of an event file's records, whose checksums are checked.
std::vector<std::string> records_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> records;
  for (std::size_t at = 0; at < all.size();) {
    std::uint64_t size = 0;
    std::uint32_t of_size = 0, of_data = 0;
    std::memcpy(&size, all.data() + at, 8);
    std::memcpy(&of_size, all.data() + at + 8, 4);
    EXPECT_EQ(masked_crc(all.substr(at, 8)), of_size);
    records.push_back(all.substr(at + 12, size));
    std::memcpy(&of_data, all.data() + at + 12 + size, 4);
    EXPECT_EQ(masked_crc(records.back()), of_data);
    at += 16 + size;
  }
  return records;
}

TEST(Events, AreRecordsWithChecksums) {
  // The CRC-32C of "123456789" is E3069283, which records carry rotated and with a constant added.
  constexpr std::uint32_t known = 0xE306'9283;
  EXPECT_EQ(masked_crc("123456789"), (known >> 15 | known << 17) + 0xA282'EAD8);
  const Folder folder;
  fs::path path;
  {
    TensorBoardEvents events(folder.path());
    events.scalar("loss", 3, 1.5F);
    path = events.path();
  }
  const std::vector<std::string> records = records_of(path);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_NE(records[0].find("brain.Event:2"), std::string::npos);
  EXPECT_NE(records[1].find("loss"), std::string::npos);
}

TEST(Events, OfLaterStepsGo) {
  const Folder folder;
  const fs::path events = folder.path() / "tensorboard";
  fs::path path;
  {
    TensorBoardEvents file(events);
    for (const std::int64_t step : {1, 2, 127, 128, 300, 70'000}) file.scalar("loss", step, 1);
    path = file.path();
  }
  {
    std::ofstream cut(path, std::ios::binary | std::ios::app);
    cut << std::string("\x20\0\0\0\0\0\0\0half", 12);
  }
  folder.put("tensorboard/mine.txt", "of the user");
  drop_events_after(events, 300);
  EXPECT_EQ(records_of(path).size(), 6U) << "the version, and five steps";
  drop_events_after(events, 127);
  EXPECT_EQ(records_of(path).size(), 4U);
  drop_events_after(events, 0);
  EXPECT_EQ(records_of(path).size(), 1U);
  EXPECT_EQ(fs::file_size(events / "mine.txt"), 11U);
  drop_events_after(folder.path() / "none", 0);
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Metrics, HaveEachStepOnceAndUtilizationWhereThePeakIsKnown) {
  const Folder folder;
  // As an earlier version wrote it.
  folder.put("metrics.csv",
             "step,loss,learning_rate,gradient_norm,parameter_norm,seconds,tokens_per_second,"
             "flops_per_second,validation_loss\n1,5,0,0,0,1,1,1,\n2,4,0,0,0,1,1,1,3.5\n3,9,0,0,0,1,1,1,\n");
  MetricsLog log(folder.path(), 2, false);
  log.add({.step = 3, .loss = 2});
  log.add({.step = 4, .loss = 1, .mfu = 0.25, .hfu = 0.5});
  const std::vector<std::string> lines = lines_of(folder.path() / "metrics.csv");
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_TRUE(lines[0].ends_with(",validation_loss,mfu,hfu"));
  for (const std::string& line : lines) EXPECT_EQ(std::ranges::count(line, ','), 10) << line;
  EXPECT_TRUE(lines[2].ends_with(",3.5,,")) << lines[2];
  EXPECT_TRUE(lines[3].starts_with("3,2,")) << lines[3];
  EXPECT_TRUE(lines[4].ends_with(",,0.25,0.5")) << lines[4];
}

}  // namespace
}  // namespace trellis::train
