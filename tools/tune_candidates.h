// What can serve a collective, and a communicator for each that measures it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ccl/communicator.h"
#include "ccl/selector.h"
#include "tools/bench_buffers.h"
#include "tools/bench_measure.h"

namespace trellis::tools {

// Every algorithm that serves it on so many ranks, with each of 1, 2 and 4 channels and segments that it knows, and
// whose messages can keep the order of lanes; of those that come to the same schedule one.
std::vector<ccl::Choice> candidates(schedule::Collective, ccl::Rank ranks);

// Whether it can cut a call of this count as it must.
bool serves_count(const ccl::Choice&, const ccl::Call&, ccl::Rank ranks);

struct Cost {
  ccl::Choice choice;
  double us = 0;      // of one operation, the slowest rank's: the median of the samples
  int samples = 0;    // 0: it was not measured
  bool final = true;  // false: given up early, as others were clearly faster
};

// Measures one collective for one number of ranks. All ranks use it alike.
class Contest {
 public:
  Contest(Bench&, const Crew&, schedule::Collective, kernels::DType, std::vector<ccl::Choice>);

  // The costs at so many bytes of the larger buffer, the cheapest first. Candidates take turns, so that what changes
  // on the machine meets all alike; the slower half drops out of each round but for `incumbent`, which stays.
  std::vector<Cost> run(std::uint64_t bytes, const ccl::Choice* incumbent);

 private:
  struct Entrant {
    ccl::Choice choice;
    std::unique_ptr<ccl::Communicator> work;
    std::vector<double> samples = {};  // us
    bool serves = true, alive = true;
    double median() const;
  };
  void prepare(std::uint64_t bytes);
  void warm_up(const std::vector<Entrant*>&, int operations);
  void round(const std::vector<Entrant*>&, int samples);
  double sample(Entrant&, int operations);

  Bench& bench_;
  schedule::Collective collective_;
  kernels::DType type_;
  std::vector<Entrant> entrants_;
  std::vector<ccl::Call> calls_;
  ccl::Call mine_;
  std::unique_ptr<BenchBuffers> buffers_;
  std::unique_ptr<Pattern> pattern_;
  std::size_t output_bytes_ = 0;
  bool back_to_back_ = false;
};

}  // namespace trellis::tools
