// Trains a small model on rank threads, and joins the parameters that they hold.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/folder.h"
#include "train/trainer/trainer.h"
#include "train/whole/job.h"

namespace trellis::train {

using Tensors = std::map<std::string, std::vector<float>>;  // whole ones, by name

struct Trained {
  std::string fault;  // empty, or what ranks threw
  std::vector<double> losses, norms;
  Tensors parameters;
  std::string differing;  // a parameter that is not the same to the bit on all ranks that hold it
};

// A small Llama with grouped queries: 4 layers, 4 query heads, 2 key/value heads.
StepConfig small_llama();

struct RunOptions {
  std::size_t steps = 10;
  double learning_rate = 1e-2;
  std::int32_t ignored_every = 0;  // every so many labels are -100
};
Trained train_threads(const StepConfig&, Rank world, const RunOptions& = {});

// Runs the body on each rank, with a thread for each. Returns what ranks threw; empty: nothing.
std::string on_threads(Rank world, const std::function<void(ccl::Communicator&)>& body);
void expect_on_threads(Rank world, const std::function<void(ccl::Communicator&)>& body);  // that none throws

// The tokens of one sample of a step, one more than the sequence has, as labels are the tokens shifted by one.
std::vector<std::int32_t> sample(const StepConfig&, std::size_t step, std::size_t number);
void set_batches(Job&, std::size_t step, std::int32_t ignored_every = 0);

// A configuration for ten steps with a checkpoint after every second one.
JobConfig run_in(const Folder&);

using Steps = std::vector<std::int64_t>;
Steps kept(const std::filesystem::path& run);  // steps of its complete checkpoints

struct Trial {
  Steps saved;
  std::vector<double> losses;                                    // one for each step that ran
  double validation = std::numeric_limits<double>::quiet_NaN();  // the last one
  StepRecord last;
  std::vector<std::string> said;  // on rank 0
  std::string fault;
};
// stop_after: it is asked to end after so many steps; 0: it is not.
Trial train_in(const JobConfig&, Rank world = 1, std::int64_t stop_after = 0);
bool said(const Trial&, const std::string& words);

// The worst tensor's largest difference relative to its largest magnitude (at least 0.01), and its name.
std::pair<double, std::string> distance(const Tensors&, const Tensors&);

}  // namespace trellis::train
