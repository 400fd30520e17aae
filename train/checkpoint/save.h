// Saves and loads what a rank of a job has. Loading does not ask with which layout it was saved.
#pragma once

#include <filesystem>
#include <limits>
#include <memory>
#include <thread>

#include "ccl/communicator.h"
#include "train/checkpoint/tag.h"
#include "train/step/run.h"
#include "train/whole/job.h"
#include "train/whole/step.h"

namespace trellis::train {

struct SaveOptions {
  bool masters = true;
  bool asynchronous = false;  // return when the state is copied; one save at a time
  Retention keep = {};
  Origin origin = {};  // of rank 0
};

class Checkpoints {
 public:
  // Every rank of the world makes one, in a communicator of its own, so that saves run beside training.
  Checkpoints(std::filesystem::path root, ccl::Communicator& world, const SaveOptions&);
  ~Checkpoints();  // waits for the last save, and forgets its error
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // stays: whatever other tags are better, until the next save.
  void save(Job&, std::int64_t step, double monitored = std::numeric_limits<double>::quiet_NaN(), bool stays = false);
  void wait();  // throws what the last save threw

 private:
  struct Copy;
  void write(const Copy&);
  std::filesystem::path root_;
  std::unique_ptr<ccl::Communicator> ranks_;
  SaveOptions options_;
  std::thread worker_;
  std::exception_ptr error_;
  std::shared_ptr<Copy> copy_;  // kept for the next save: new pages would take longer than the copying
};

bool has_optimizer_state(const TensorSource&);

// Parameters, and optimizer state where it is wanted and the source has it; masters that it lacks begin as the
// parameters are. Returns whether there was optimizer state for all that this rank trains.
bool load(Job&, const TensorSource&, bool state = true);

// The parameters of a step that is not trained.
void load_parameters(const RankStep&, Runner&, const TensorSource&);

// What a rank saves, without its bytes; and its file.
std::vector<ShardTensor> saved_tensors(const RankStep&, bool masters);
std::string shard_name(const MeshShape&, const Place&);
std::string layout_words(const RankStep&);  // "T2 P1 D2 ZeRO-1"

// Weights alone, whole and by their own names, as a safetensors file. merge: W + alpha / rank x B A instead of weights
// with adapters, and these are left out; alpha is the checkpoint's, or what is given. Throws invalid_argument where it
// is not known, or there are no adapters.
struct Merge {
  bool merge = false;
  double alpha = 0;  // 0: the checkpoint's
};
// Adds alpha / rank x B A of NAME's adapter to its values, if it has one. Returns whether it has.
bool merge_adapter(const TensorSource&, const std::string& name, double alpha, std::vector<float>& values);
double alpha_of(const TensorSource&, const Merge&);  // throws where adapters are merged and it is not known
void export_weights(const TensorSource&, const std::filesystem::path&, const Merge& = {});

}  // namespace trellis::train
