// Saves and loads the state of a job's rank. A checkpoint can be loaded under any layout.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <thread>

#include "ccl/communicator.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/step/run.h"
#include "train/whole/job.h"
#include "train/whole/rank_step.h"

namespace trellis::train {

struct SaveOptions {
  bool masters = true;
  bool asynchronous = false;  // return when the state is copied; one save at a time
  Retention keep = {};
  TrainingProvenance origin = {};  // of rank 0
};

class CheckpointSaver {
 public:
  // Every rank of the world constructs one. It splits off its own communicator, so that saves run beside training.
  CheckpointSaver(std::filesystem::path root, ccl::Communicator& world, const SaveOptions&);
  ~CheckpointSaver();  // waits for the last save, and forgets its error

  // stays: the tag is kept until the next save, even if other tags are better.
  void save(Job&, std::int64_t step, double monitored = std::numeric_limits<double>::quiet_NaN(), bool stays = false);
  void wait();                             // throws what the last save threw
  bool failed() const { return failed_; }  // the last save threw already

 private:
  struct Copy;
  void write(const Copy&);
  void together(const std::filesystem::path& tag, const std::function<void()>& part);
  std::filesystem::path root_;
  std::unique_ptr<ccl::Communicator> ranks_;
  SaveOptions options_;
  std::thread worker_;
  std::exception_ptr error_;
  std::atomic<bool> failed_ = false;
  std::shared_ptr<Copy> copy_;  // kept for the next save: new pages would take longer than the copying
};

bool has_optimizer_state(const CheckpointReader&);

// The name of the tensor from which a parameter of this type is read: for f32 its master, if the source has one,
// because the parameter beside it is a narrower copy; else the parameter.
std::string widest(const CheckpointReader&, const std::string& name, DType);

// Whether a source has optimizer state for all that the rank trains.
bool has_state(const RankStep&, const CheckpointReader&);

// Loads parameters; masters, which are copied from the parameters where the source has none; and moments, if `state` is
// set and the source has_state. Else moments start at zero. Returns whether moments were loaded.
bool load(Job&, const CheckpointReader&, bool state = true);

// Loads the parameters of a step that is not trained.
void load_parameters(const RankStep&, Runner&, const CheckpointReader&);

// The tensors that a rank saves, without their bytes; and the name of its file.
std::vector<ShardTensor> saved_tensors(const RankStep&, bool masters);
std::string shard_name(const MeshShape&, const Place&);
std::string layout_words(const RankStep&);  // "T2 P1 D2 ZeRO-1"

// export_weights() writes weights alone, whole and by their own names, as a safetensors file. merge: a weight W with an
// adapter becomes W + alpha / rank x B A, and the adapters are left out. Throws invalid_argument if alpha is not known,
// or there are no adapters to merge.
struct AdapterMergeOptions {
  bool merge = false;
  double alpha = 0;  // 0: the checkpoint's
};
// Adds alpha / rank x B A to `values`, those of the weight NAME, if it has an adapter; returns whether it has. The type
// is that of the merged weight: for f32, A and B are read from their masters, where the source has these.
bool merge_adapter(const CheckpointReader&, const std::string& name, double alpha, DType, std::vector<float>& values);
double alpha_of(const CheckpointReader&,
                const AdapterMergeOptions&);  // throws where adapters are merged and alpha is not known
void export_weights(const CheckpointReader&, const std::filesystem::path&, const AdapterMergeOptions& = {});

}  // namespace trellis::train
