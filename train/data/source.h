// Where samples come from: files of tokens, blends of these, or what a program makes itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trellis::train {

// Identifies the content of a file.
struct DataFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;
};

inline constexpr std::int32_t no_label = -100;  // the loss leaves the position out

// One sample, seq_length of each. labels: for each token the one that is to be predicted, or no_label. starts: the
// first position of the sample that attention sees from here; null where attention is not cut.
struct TokenSample {
  std::int32_t *tokens = nullptr, *labels = nullptr, *starts = nullptr;
};

// Sample number n is a function of n alone, so that a resumed run goes on with the samples that were to come. A thread
// of its own calls read() ahead of the training; read() may throw.
class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual std::uint64_t samples() const = 0;  // of an epoch
  // Numbers count over the whole training, epoch after epoch. Fills all that is not null.
  virtual void read(std::uint64_t number, const TokenSample&) const = 0;
  // Identifies the data, so that a resumed run can check that it has the same.
  virtual std::vector<DataFile> identity() const { return {}; }
};

}  // namespace trellis::train
