// A blend of sources by weights.
#pragma once

#include <memory>
#include <vector>

#include "train/data/source.h"

namespace trellis::train {

// Each source has its share of every 65,536 samples, spread evenly: after n samples it has had its weight's part of n,
// to within one or so. The samples of a source come epoch by epoch, in epochs of its own. Weights are divided by their
// sum.
class Blend : public DataSource {
 public:
  // Throws invalid_argument for no source, another number of weights, or a weight that is not above 0 or too small for
  // one sample in 65,536.
  Blend(std::vector<std::shared_ptr<const DataSource>>, const std::vector<double>& weights);
  ~Blend() override;
  std::uint64_t samples() const override;  // until every source has had an epoch at least
  void read(std::uint64_t number, const TokenSample&) const override;
  std::vector<DataFile> identity() const override;

  struct Choice {
    std::size_t source;
    std::uint64_t number;  // which of its samples
  };
  Choice choice(std::uint64_t number) const;

 private:
  std::vector<std::shared_ptr<const DataSource>> sources_;
  std::vector<std::uint32_t> source_, rank_;  // by place in a round: the source, and which of its samples there
  std::vector<std::uint32_t> count_;          // samples of each source in a round
};

}  // namespace trellis::train
