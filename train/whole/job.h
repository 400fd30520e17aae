// One rank of a training job: its step, its communicators, its memory; parameters set to their initial values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "train/config/config.h"
#include "train/layers/parameter.h"

namespace trellis::ccl {
class Communicator;
}

namespace trellis::train {

class Runner;
struct RankStep;

// Splits the world into the communicators that the step's program uses. Every rank of the world calls it.
std::map<Axis, std::shared_ptr<ccl::Communicator>> communicators_for(const RankStep&, ccl::Communicator& world);

// A micro-batch, one sequence after the other. types and next are for models of pairs: the type of each token, and for
// each sequence 0 if its second part follows the first, else 1.
struct MicroBatch {
  const std::int32_t *tokens = nullptr, *labels = nullptr;
  const std::int32_t *types = nullptr, *next = nullptr;
  const std::int32_t* starts = nullptr;  // where attention is cut: the first position that each token sees
};
void put_batch(const RankStep&, Runner&, std::size_t micro, const MicroBatch&);

class Job {
 public:
  // Every rank of the world calls it. Lays out the step, and fills parameters and masters.
  Job(const StepConfig&, ccl::Communicator& world, int threads = 1);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const RankStep& step() const { return *step_; }
  Runner& runner() { return *runner_; }
  const Parameters& parameters() const;  // of this rank

  void set_batch(std::size_t micro, const MicroBatch& batch) { put_batch(*step_, *runner_, micro, batch); }
  struct Result {
    double loss = 0;
    double norm = 0;  // before clipping; 0 where clipping is off
  };
  Result run(const StepInputs&);

  // Sets parameters, and masters where there are any.
  void fill(const std::function<Values(const Parameter&)>&);
  void fill(const Parameter&, const Values&);
  // A parameter's rows here, as f32.
  std::vector<float> values(const Parameter&) const;
  // Gradients of the last step, before clipping: means over the whole batch. With ZeRO-1, ranks that have the same rows
  // sum these up here, so all of them must call it.
  std::vector<float> gradients(const Parameter&) const;

 private:
  std::unique_ptr<const RankStep> step_;
  std::unique_ptr<Runner> runner_;
};

}  // namespace trellis::train
