// Token files and the sampler; learning rates; keys of configurations; event files.
#include "train/data/tokens.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/folder.h"
#include "tests/why.h"
#include "train/config/keys.h"
#include "train/trainer/events.h"
#include "train/trainer/learning_rate.h"

namespace trellis::train {
namespace {

namespace fs = std::filesystem;

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string out;
  for (T v : values) out.append(reinterpret_cast<const char*>(&v), sizeof v);
  return out;
}

std::string megatron_index(std::uint8_t type, std::initializer_list<std::int32_t> sizes) {
  std::string out("MMIDIDX\0\0", 9);
  out += bytes_of<std::uint64_t>({1}) + bytes_of<std::uint8_t>({type}) +
         bytes_of<std::uint64_t>({sizes.size(), sizes.size() + 1});
  out += bytes_of(sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) out += bytes_of<std::int64_t>({0});
  return out;
}

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
  folder.put("d.idx", megatron_index(4, {1, 2}));
  const TokenFile megatron(folder.path() / "d", 0);
  EXPECT_EQ(megatron.tokens(), 3U);
  EXPECT_EQ(megatron.at(2), 7);
  folder.put("d.idx", megatron_index(4, {1, 1}));
  EXPECT_THROW(TokenFile(folder.path() / "d.bin", 0), std::invalid_argument);
  folder.put("d.idx", megatron_index(6, {1, 2}));
  EXPECT_THROW(TokenFile(folder.path() / "d.bin", 0), std::invalid_argument);
  EXPECT_THROW(TokenFile(folder.path() / "none.txt", 0), std::system_error);
}

TEST(Tokens, OfPromptsDoNotCount) {
  const Folder folder;
  std::vector<std::unique_ptr<TokenFile>> files;
  files.push_back(std::make_unique<TokenFile>(
      folder.put("a.jsonl", "{\"prompt\": \"ab\", \"response\": \"cd\"}\n\n{\"response\": \"f\", \"prompt\": \"e\"}\n"),
      0));
  ASSERT_EQ(files[0]->tokens(), 8U);  // abcd, ef, and two ends of lines
  const Sampler sampler(std::move(files), 7, 1);
  std::int32_t tokens[8], labels[7];
  sampler.read(0, tokens, labels);
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
  std::vector<std::size_t> epochs[2];
  for (std::uint64_t i = 0; i < 40; ++i) epochs[i / 20].push_back(sampler.place(i));
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto& epoch : epochs) EXPECT_EQ(std::set<std::size_t>(epoch.begin(), epoch.end()).size(), 20U);
  std::int32_t sample[5];
  sampler.read(7, sample);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sample[i], static_cast<std::int32_t>(sampler.place(7) % 10 * 4) + i);
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

std::string refusal(const KeyValue& v) {
  JobConfig c;
  return why([&] { apply(c, v); });
}

TEST(Keys, SayWhatTheyExpect) {
  EXPECT_EQ(refusal({"trainer.max_steps", {"many"}}), "trainer.max_steps is 'many': expected a whole number");
  EXPECT_EQ(refusal({"distributed_strategy.zero1", {"perhaps"}}),
            "distributed_strategy.zero1 is 'perhaps': expected true or false");
  EXPECT_NE(refusal({"precision.type", {"manual"}}).find("expected fp32, bf16SR"), std::string::npos);
  EXPECT_NE(refusal({"model_alignment_strategy.dpo", {}}).find("not built"), std::string::npos);
  JobConfig c;
  for (const char* spelling : {"mixed_precisionSR", "mixed_precision_SR"}) {
    c.step.precision = Precision::fp32;
    apply(c, {"precision.type", {spelling}});
    EXPECT_EQ(c.step.precision, Precision::mixed_sr);
  }
  apply(c, {"model.pipeline_cuts", {"model.layers.3", "7"}, true});
  EXPECT_EQ(c.step.strategy.cuts, (std::vector<std::size_t>{3, 7}));
  apply(c, {"exp_manager.checkpoint_callback_params.save_last", {"true"}});
  EXPECT_TRUE(c.experiment.save_last);
  EXPECT_NE(apply(c, {"compiler_flags", {"-O1"}}), "");
  EXPECT_TRUE(is_section("model.optim"));
  EXPECT_FALSE(is_section("model.opti"));
}

TEST(Events, AreRecordsWithChecksums) {
  // The CRC-32C of "123456789" is E3069283, which records carry rotated and with a constant added.
  constexpr std::uint32_t known = 0xE306'9283;
  EXPECT_EQ(masked_crc("123456789"), (known >> 15 | known << 17) + 0xA282'EAD8);
  const Folder folder;
  fs::path path;
  {
    EventFile events(folder.path());
    events.scalar("loss", 3, 1.5F);
    path = events.path();
  }
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
  ASSERT_EQ(records.size(), 2U);
  EXPECT_NE(records[0].find("brain.Event:2"), std::string::npos);
  EXPECT_NE(records[1].find("loss"), std::string::npos);
}

}  // namespace
}  // namespace trellis::train
