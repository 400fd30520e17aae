// Streams of tokens in files: text as bytes, plain 16- or 32-bit numbers (.bin), Megatron's pairs of .bin and .idx. For
// supervised fine-tuning: lines of JSON with a prompt and a response (.jsonl), as bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "train/data/read_file.h"

namespace trellis::train {

// By which the content of a file is known again.
struct DataFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;
};

class TokenFile {
 public:
  // token_bytes: of a .bin without .idx, 2 or 4; 0 there is a mistake. Throws system_error, or invalid_argument that
  // names the file and what was expected.
  TokenFile(const std::filesystem::path&, std::size_t token_bytes);
  const std::string& name() const { return name_; }
  std::size_t tokens() const { return tokens_; }
  // Throws runtime_error where the file was cut short since it was opened.
  void read(std::size_t first, std::size_t count, std::int32_t* out) const;
  std::int32_t at(std::size_t i) const;
  // Whether predicting the token counts for the loss: not, where it is of a prompt.
  bool counts(std::size_t i) const { return counts_.empty() || counts_[i]; }
  DataFile identity() const;  // reads all of it

 private:
  void read_index(const std::filesystem::path&);
  void read_records();
  std::string name_;
  std::unique_ptr<ReadFile> file_;
  std::size_t width_ = 1, tokens_ = 0;
  std::string text_;  // of records; else the file's bytes are the tokens
  std::vector<bool> counts_;
};

// Which samples a data-parallel rank trains on: a function of its place, the step and the seed alone.
class Sampler {
 public:
  // Each sample is `length` + 1 tokens; samples follow each other, and begin in one file. Throws invalid_argument when
  // the files have fewer tokens than one sample.
  Sampler(std::vector<std::unique_ptr<TokenFile>>, std::size_t length, std::uint64_t seed);
  std::size_t samples() const { return samples_; }  // of an epoch

  // Sample number `number` of the whole training: each epoch has all samples in an order of its own.
  // labels: of the first `length` tokens, the next ones, or -100 where these do not count.
  void read(std::uint64_t number, std::int32_t* tokens, std::int32_t* labels = nullptr) const;
  std::size_t place(std::uint64_t number) const;  // the sample in file order
  // Throws invalid_argument that names a token that is no entry of the vocabulary.
  void check(std::size_t vocabulary) const;
  std::vector<DataFile> identity() const;

 private:
  std::vector<std::unique_ptr<TokenFile>> files_;
  std::vector<std::size_t> first_;  // sample of each file, and one past the last
  std::size_t length_, samples_ = 0;
  std::uint64_t seed_;
};

// A permutation of 0 .. n-1 by a key, without memory.
std::uint64_t permuted(std::uint64_t i, std::uint64_t n, std::uint64_t key);

}  // namespace trellis::train
