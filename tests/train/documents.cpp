// Documents, masks and blends: what a sample consists of, and the errors for damaged files.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tests/folder.h"
#include "tests/train/megatron.h"
#include "tests/why.h"
#include "train/data/blend.h"
#include "train/data/megatron_index.h"
#include "train/data/sampler.h"

namespace trellis::train {
namespace {

namespace fs = std::filesystem;

std::string refusal_of(const fs::path& path) {
  return why<std::exception>([&] { TokenFile(path, 2); });
}

std::vector<std::unique_ptr<TokenFile>> only(const fs::path& path) {
  std::vector<std::unique_ptr<TokenFile>> files;
  files.push_back(std::make_unique<TokenFile>(path, 0));
  return files;
}

TEST(Documents, DocumentsAndMasksOfMegatronsFiles) {
  const Folder folder;
  folder.put("a.bin", bytes_of<std::uint16_t>({10, 11, 12, 20, 21, 30, 31, 32, 33}));
  folder.put("a.idx", index_of(8, 2, {3, 2, 0, 4}));
  folder.put("a.mask", std::string("\0\1\1\0\1\1\1\1\1", 9));
  const TokenFile file(folder.path() / "a", 0);
  EXPECT_EQ(file.documents(), (std::vector<std::uint64_t>{0, 3, 5, 5, 9}));
  const auto read = [&](const DocumentOptions& options, std::uint64_t number, std::size_t length) {
    const Sampler sampler(only(folder.path() / "a"), length, 1, options);
    std::vector<std::int32_t> all(3 * length);
    sampler.read(number, {&all[0], &all[length], &all[2 * length]});
    return all;
  };
  using Row = std::vector<std::int32_t>;
  EXPECT_EQ(read({}, 0, 8), (Row{10, 11, 12,   20, 21, 30, 31, 32,  //
                                 11, 12, -100, 21, 30, 31, 32, 33, 0, 0, 0, 3, 3, 5, 5, 5}));
  EXPECT_EQ(read({.mask_ends = true}, 0, 8), (Row{10, 11, 12,   20, 21,   30, 31, 32,  //
                                                  11, 12, -100, 21, -100, 31, 32, 33, 0, 0, 0, 3, 3, 5, 5, 5}));
  std::set<Row> documents;
  for (std::uint64_t i = 0; i < 4; ++i) documents.insert(read({.whole_documents = true}, i, 3));
  EXPECT_EQ(documents, (std::set<Row>{{10, 11, 12, 11, 12, -100, 0, 0, 0},
                                      {20, 21, 0, 21, -100, -100, 0, 0, 0},
                                      {0, 0, 0, -100, -100, -100, 0, 0, 0},
                                      {30, 31, 32, 31, 32, 33, 0, 0, 0}}));
  folder.put("a.mask", "short");
  EXPECT_NE(refusal_of(folder.path() / "a").find("a.mask has 5 bytes: expected 9, one for each token of"),
            std::string::npos);
}

TEST(Documents, ADamagedIndexIsNamed) {
  const std::string whole = index_of(8, 2, {3, 2});
  EXPECT_EQ(megatron_index("x.idx", whole, 10).documents, (std::vector<std::uint64_t>{0, 3, 5}));
  const auto refusal = [&](std::string bytes, std::uint64_t data = 10) {
    return why<std::invalid_argument>([&] { megatron_index("x.idx", bytes, data); });
  };
  for (std::size_t n = 34; n < whole.size(); ++n)
    EXPECT_NE(refusal(whole.substr(0, n)).find("x.idx: it was cut short: 2 sequences and 3 documents"),
              std::string::npos)
        << n;
  EXPECT_EQ(refusal(whole.substr(0, 20)), "x.idx: expected an index that begins with MMIDIDX");
  EXPECT_EQ(refusal(whole, 12), "x.idx: 5 tokens of 2 bytes in sequences, and 12 bytes of data");
  std::string wrong = whole;
  wrong[34 + 8 + 8] = 7;  // where the second sequence begins
  EXPECT_EQ(refusal(wrong), "x.idx: sequence 1 begins at byte 7: expected 6, the end of the one before");
  wrong = whole;
  wrong[34 + 8 + 16 + 8] = 9;  // the second document
  EXPECT_EQ(refusal(wrong), "x.idx: document 1 begins with sequence 9: expected 0 to 2");
}

TEST(Documents, WhatCanBePreparedComesWithItsCommand) {
  const Folder folder;
  folder.put("set/train.parquet", "PAR1");
  for (const char* name : {"set", "set/train.parquet"})
    EXPECT_NE(
        refusal_of(folder.path() / name)
            .find("; `python3 -m trellis.train prepare " + (folder.path() / name).string() + " --tokenizer DIR -o "),
        std::string::npos)
        << refusal_of(folder.path() / name);
  EXPECT_NE(refusal_of(folder.put("a.jsonl", "{\"text\": \"x\"}\n")).find("; `python3 -m trellis.train prepare"),
            std::string::npos);
}

class Numbers : public DataSource {
 public:
  explicit Numbers(std::int32_t which) : which_(which) {}
  std::uint64_t samples() const override { return 10; }
  void read(std::uint64_t number, const TokenSample& out) const override {
    out.tokens[0] = which_, out.tokens[1] = static_cast<std::int32_t>(number);
  }

 private:
  std::int32_t which_;
};

TEST(Documents, ABlendHasItsSharesEverywhereAndEachSourceInItsOrder) {
  const std::vector<double> weights{0.7, 0.2, 0.1};
  std::vector<std::shared_ptr<const DataSource>> sources;
  for (std::int32_t i = 0; i < 3; ++i) sources.push_back(std::make_shared<Numbers>(i));
  const Blend blend(sources, weights);
  std::vector<std::int64_t> had(3);
  for (std::int64_t n = 0; n < 70'000; ++n) {
    std::int32_t read[2];
    blend.read(static_cast<std::uint64_t>(n), {.tokens = read});
    ASSERT_EQ(read[1], had[static_cast<std::size_t>(read[0])]++) << n;
    for (std::size_t i = 0; i < 3; ++i)
      ASSERT_NEAR(static_cast<double>(had[i]), weights[i] * static_cast<double>(n + 1), 2) << i << " after " << n;
  }
  EXPECT_EQ(blend.samples(), 100U) << "the third one's ten are a tenth";
  for (const std::vector<double>& wrong : {std::vector<double>{1, 1}, {1, 0, 1}, {1, -1, 1}, {1e9, 1, 1}})
    EXPECT_THROW(Blend(sources, wrong), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::train
