// The algorithms that can serve a collective, and their measurement.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ccl/communicator.h"
#include "ccl/plan/selection_table.h"
#include "measure/buffers.h"
#include "measure/measure.h"

namespace trellis::measure {

// Every algorithm that serves the collective on so many ranks, with each of 1, 2 and 4 channels and segments that it
// supports, if its schedule runs over the library's FIFO lanes. If several make the same schedule, one is kept.
std::vector<ccl::AlgorithmConfig> candidates(schedule::Collective, ccl::Rank ranks);

// Whether the config can cut a call of this count into its chunks.
bool serves_count(const ccl::AlgorithmConfig&, const ccl::Call&, ccl::Rank ranks);

struct CandidateCost {
  ccl::AlgorithmConfig config;
  double time = 0;    // us, of one operation on the slowest rank: the median of the samples
  int samples = 0;    // 0: it was not measured
  bool final = true;  // false: given up early, because others were clearly faster
};

// Measures one collective for one number of ranks. Collective: all ranks use it alike.
class AlgorithmContest {
 public:
  AlgorithmContest(BenchContext&, const launch::RankContext&, schedule::Collective, kernels::DType,
                   std::vector<ccl::AlgorithmConfig>);

  // The costs at so many bytes of the larger buffer, cheapest first. Candidates are measured in turn, so that changes
  // on the machine affect all alike. The slower half is dropped in each round, except `incumbent`.
  std::vector<CandidateCost> run(std::uint64_t bytes, const ccl::AlgorithmConfig* incumbent);
  // What the library selects by itself for the call that was measured last.
  std::string selected() const { return bench_.work.front()->algorithm(mine_); }

 private:
  struct Entrant {
    ccl::AlgorithmConfig config;
    std::unique_ptr<ccl::Communicator> work;
    std::vector<double> samples = {};  // us
    bool serves = true, alive = true;
    double median() const;
  };
  void prepare(std::uint64_t bytes);
  void warm_up(const std::vector<Entrant*>&, int operations);
  void round(const std::vector<Entrant*>&, int samples);
  double sample(Entrant&, int operations);

  BenchContext& bench_;
  schedule::Collective collective_;
  kernels::DType type_;
  std::vector<Entrant> entrants_;
  std::vector<ccl::Call> calls_;
  ccl::Call mine_;
  std::unique_ptr<BenchBuffers> buffers_;
  std::unique_ptr<DataPattern> pattern_;
  std::size_t output_bytes_ = 0;
  bool back_to_back_ = false;
};

}  // namespace trellis::measure
