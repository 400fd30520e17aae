// Samples of token files. Each epoch has an order of its own.
#pragma once

#include <memory>
#include <vector>

#include "train/data/source.h"
#include "train/data/token_file.h"

namespace trellis::train {

struct DocumentOptions {
  bool whole_documents = false;  // a sample is a document, cut off or padded; else files are one stream of tokens
  bool mask_ends = false;        // no document's last token predicts the next one's first
};

// Which samples a data-parallel rank trains on is a function of its place, the step and the seed alone.
class Sampler : public DataSource {
 public:
  // Samples of a stream follow each other, `length` tokens and one more to predict, and are of one file each. Throws
  // invalid_argument where there is no sample.
  Sampler(std::vector<std::unique_ptr<TokenFile>>, std::size_t length, std::uint64_t seed, const DocumentOptions& = {});
  ~Sampler() override;
  std::uint64_t samples() const override { return samples_; }
  void read(std::uint64_t number, const TokenSample&) const override;
  std::vector<DataFile> identity() const override;

  std::uint64_t place(std::uint64_t number) const;  // the sample in file order
  // Throws invalid_argument that names a token that is no entry of the vocabulary.
  void check(std::size_t vocabulary) const;

 private:
  struct Stretch {
    const TokenFile* file;
    std::size_t first, count;  // the last token is only predicted, never an input
  };
  Stretch stretch(std::uint64_t number) const;
  std::vector<std::unique_ptr<TokenFile>> files_;
  std::vector<std::uint64_t> first_;  // sample of each file, and one past the last
  std::size_t length_;
  std::uint64_t samples_ = 0, seed_;
  DocumentOptions options_;
};

// Where a permutation of 0 .. n-1, chosen by the key, puts i. Computed without a table.
std::uint64_t permuted(std::uint64_t i, std::uint64_t n, std::uint64_t key);

}  // namespace trellis::train
