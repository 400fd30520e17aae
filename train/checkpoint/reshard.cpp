#include "train/checkpoint/reshard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "text/refuse.h"
#include "train/checkpoint/save_load.h"
#include "train/whole/rank_step.h"

namespace trellis::train {
namespace {

// The rectangle of a source's tensor as bytes of the type.
std::vector<std::byte> read_as(const CheckpointReader& source, const std::string& name, const TensorSlice& slice,
                               DType type) {
  std::vector<float> values(slice.elements());
  source.read(name, slice, values.data());
  return encoded(type, values);
}

// The name under which a source has the tensor. A master that it lacks is read from the parameter, and a parameter in
// f32 from the master. Empty: it has none.
std::string found_in(const CheckpointReader& source, const std::string& name, DType type) {
  if (source.has(name)) return widest(source, name, type);
  const std::size_t colon = name.find(':');
  return colon != name.npos && name.starts_with("master:") ? name.substr(colon + 1) : "";
}

}  // namespace

std::filesystem::path reshard(const CheckpointReader& source, const StepConfig& config, Rank world,
                              const std::filesystem::path& root) {
  const TrainingProvenance& was = source.info().origin;
  const ResumeDifferences d = differences(was, {.step = config, .trainer = {}, .data = {}, .experiment = {}}, {}, true);
  if (!d.refused.empty()) text::refuse("the checkpoint is of another model: {}", fmt::join(d.refused, "; "));
  const std::filesystem::path tag = root / tag_name(source.info().step);
  std::filesystem::create_directories(tag);
  std::filesystem::remove(tag / "done");
  TagInfo info = source.info();
  info.files.clear();
  for (Rank r = 0; r < world; ++r) {
    const RankStep step = lay_out(config, world, r);
    std::vector<ShardTensor> tensors = saved_tensors(step, true);
    std::erase_if(tensors, [&](const ShardTensor& t) {
      return t.name.find(':') != t.name.npos && found_in(source, t.name, t.type).empty();
    });
    std::vector<std::vector<std::byte>> bytes;
    for (ShardTensor& t : tensors) {
      const std::string found = found_in(source, t.name, t.type);
      bytes.push_back(read_as(source, found.empty() ? t.name : found, t.slice, t.type));
      t.data = bytes.back().data();
    }
    info.files.push_back(shard_name(step.mesh.shape(), step.place));
    info.layout = layout_words(step);
    write_shard(tag / info.files.back(), tensors);
  }
  write_done(tag, info);
  return tag;
}

}  // namespace trellis::train
