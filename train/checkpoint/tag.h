// A folder of checkpoints: one folder a tag, one file a rank in it. A tag is complete when it has `done`, which is
// written last and lists the files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "train/checkpoint/origin.h"
#include "train/checkpoint/shard.h"

namespace trellis::train {

struct TagInfo {
  std::int64_t step = 0;
  std::vector<std::string> files = {};
  std::string layout = {};   // "T2 P1 D2 ZeRO-1", for people
  double lora_alpha = 0;     // 0: there are no adapters
  std::string monitor = {};  // what was monitored, and its value then; NaN: there was none
  double monitored = std::numeric_limits<double>::quiet_NaN();
  Origin origin = {};
};

std::string tag_name(std::int64_t step);                                    // "step_00000100"
std::vector<std::string> complete_tags(const std::filesystem::path& root);  // oldest first
TagInfo read_done(const std::filesystem::path& tag);  // throws invalid_argument, also for a file that is missing
void write_done(const std::filesystem::path& tag, const TagInfo&);

// Which complete tags stay: the best by a monitored value; of equal ones and those without a value, the newer.
struct Keep {
  std::int64_t most = 1;                // -1: all
  std::string monitor = "global_step";  // the tag's step; of other names, TagInfo::monitored
  bool lowest = false;                  // is best
  bool newest = false;                  // the newest stays beside them, if it is none of them
};

// Removes the other complete tags, and incomplete ones that are older than the first complete one. `done` goes first,
// so that what is left of a removal is incomplete.
void keep_tags(const std::filesystem::path& root, const Keep&);

// Tensors of a tag, or of files of safetensors, wherever their rectangles are.
class TensorSource {
 public:
  // A tag's folder, or a .safetensors file. Throws as read_done and shard_entries do.
  explicit TensorSource(const std::filesystem::path&);
  ~TensorSource();
  bool has(const std::string& name) const { return parts_.contains(name); }
  std::vector<std::string> names() const;
  Slice whole(const std::string& name) const;
  DType type(const std::string& name) const;
  const TagInfo& info() const { return info_; }

  // The rectangle as f32, row by row. Throws invalid_argument: there is no such tensor, its size is another one, a part
  // is in no file, or a file's bytes have changed since they were written.
  void read(const std::string& name, const Slice&, float* out) const;
  // Checksums of everything. Throws at the first that is wrong; returns how many tensors were checked.
  std::size_t verify() const;

 private:
  struct File;
  struct Part {
    const File* file;
    ShardEntry entry;
  };
  std::vector<std::byte> bytes_of(const Part&) const;  // throws where they are not those that were written
  std::vector<std::unique_ptr<File>> files_;
  std::map<std::string, std::vector<Part>> parts_;
  TagInfo info_;
};

}  // namespace trellis::train
