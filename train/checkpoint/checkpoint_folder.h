// A folder of checkpoints. Each checkpoint is a folder in it, called a tag, with a file of each rank. A tag is complete
// when it has the file `done`, which is written last and lists the others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/hf_index.h"
#include "train/checkpoint/shard.h"
#include "train/checkpoint/training_provenance.h"

namespace trellis::train {

struct TagInfo {
  std::int64_t step = 0;
  std::vector<std::string> files = {};
  std::string layout = {};   // "T2 P1 D2 ZeRO-1", for people
  double lora_alpha = 0;     // 0: there are no adapters
  std::string monitor = {};  // what was monitored, and its value at that step; NaN: none
  double monitored = std::numeric_limits<double>::quiet_NaN();
  TrainingProvenance origin = {};
};

std::string tag_name(std::int64_t step);                                    // "step_00000100"
std::vector<std::string> complete_tags(const std::filesystem::path& root);  // oldest first
TagInfo read_done(const std::filesystem::path& tag);  // throws invalid_argument, also for a file that is missing
void write_done(const std::filesystem::path& tag, const TagInfo&);

// Which complete tags stay: the best by a monitored value; of equal ones and those without a value, the newer.
struct Retention {
  std::int64_t most = 1;                // -1: all
  std::string monitor = "global_step";  // compares the tags' steps; another name: TagInfo::monitored
  bool lowest = false;                  // the lowest value is the best
  bool newest = false;                  // the newest stays too, even if it is not among the best
};

// Removes the other complete tags, and incomplete ones that are older than the first complete one. `done` is removed
// first, so that a removal that is cut off leaves an incomplete tag.
void keep_tags(const std::filesystem::path& root, const Retention&);

// The tensors of a tag, of a safetensors file or of a Hugging Face folder. A rectangle of a tensor is read from
// whichever files hold parts of it.
class CheckpointReader {
 public:
  // Throws as read_done, shard_entries and hf_weights do.
  explicit CheckpointReader(const std::filesystem::path&);
  ~CheckpointReader();
  bool has(const std::string& name) const;
  std::vector<std::string> names() const;
  TensorSlice whole(const std::string& name) const;
  DType type(const std::string& name) const;
  const TagInfo& info() const { return info_; }
  const std::optional<StepConfig>& hf() const { return hf_; }  // of a folder of Hugging Face: the model

  // The rectangle as f32, row by row. Throws invalid_argument: there is no such tensor, its size is another one, a part
  // is in no file, or a file's bytes have changed since they were written.
  void read(const std::string& name, const TensorSlice&, float* out) const;
  // Verifies all checksums. Throws at the first that is wrong; returns how many tensors have them.
  std::size_t verify() const;

 private:
  struct File;
  struct Part {
    const File* file;
    ShardEntry entry;
  };
  void add(const std::filesystem::path& file);
  void expect_indexed(const HfIndex&) const;
  const std::vector<Part>& parts(const std::string& name) const;  // by the name in the files
  TensorSlice stored(const std::string& name) const;
  void read_stored(const std::string& name, const TensorSlice&, float* out) const;
  std::vector<std::byte> bytes_of(const Part&) const;  // throws where their checksum does not match
  std::vector<std::byte> rows_of(const Part&, std::size_t first, std::size_t count) const;
  std::vector<std::unique_ptr<File>> files_;
  std::filesystem::path path_;
  std::map<std::string, std::vector<Part>> parts_;
  TagInfo info_;
  std::optional<StepConfig> hf_;
};

}  // namespace trellis::train
