#include "train/checkpoint/save_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>

#include "kernels/layers/matmul.h"
#include "kernels/reduce/cast.h"
#include "train/update/optimizer_state.h"

namespace trellis::train {
namespace {

constexpr std::string_view master = "master:", first_of_two = "first_moment:";
constexpr std::string_view moment_alone = "momentum:";  // of rules with one moment: SGD's is a sum, AdamW's a mean

std::string first_moment(const OptimizerState& s) {
  return std::string(s.second == no_tensor ? moment_alone : first_of_two) + s.parameter->name;
}
std::string second_moment(const OptimizerState& s) { return "second_moment:" + s.parameter->name; }

// If several ranks hold the same elements, the first one saves them.
bool saves(const RankStep& step, const OptimizerState& s, bool parameter) {
  const Parameter& p = *s.parameter;
  if (!p.first_copy) return false;
  const bool sharded = !parameter && step.config.strategy.zero1;
  return p.owner && (sharded || index_of(step.mesh.shape(), data_axis(step.mesh.shape(), p), step.place) == 0);
}

using TensorAt = std::function<const void*(TensorId)>;

std::vector<ShardTensor> tensors_of(const RankStep& step, bool masters, const TensorAt& at) {
  std::vector<ShardTensor> all;
  const auto add = [&](const std::string& name, TensorId t, const TensorSlice& slice) {
    if (t != no_tensor && slice.elements() > 0) all.push_back({name, step.program.tensor(t).type, slice, at(t)});
  };
  for (const OptimizerState& s : step.states) {
    const Parameter& p = *s.parameter;
    if (saves(step, s, true)) add(p.name, p.value, p.slice);
    if (!saves(step, s, false)) continue;
    if (masters) add(std::string(master) + p.name, s.master, s.slice);
    add(first_moment(s), s.first, s.slice);
    add(second_moment(s), s.second, s.slice);
  }
  return all;
}

}  // namespace

std::string shard_name(const MeshShape& s, const Place& p) {
  return fmt::format("dp_rank_{:02}_tp_rank_{:02}_pp_rank_{:02}.safetensors", index_of(s, Axis::sharding, p), p.tensor,
                     p.pipeline);
}

std::string layout_words(const RankStep& step) {
  const MeshShape& s = step.mesh.shape();
  return fmt::format("T{} P{} D{}{}{}{}", s.tensor, s.pipeline, s.data,
                     s.context > 1 ? fmt::format(" C{}", s.context) : "",
                     s.expert > 1 ? fmt::format(" E{}", s.expert) : "", step.config.strategy.zero1 ? " ZeRO-1" : "");
}

std::vector<ShardTensor> saved_tensors(const RankStep& step, bool masters) {
  return tensors_of(step, masters, [](TensorId) { return nullptr; });
}

// A copy of the bytes to write, so that training can go on meanwhile.
struct CheckpointSaver::Copy {
  std::vector<ShardTensor> tensors;
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;
  std::filesystem::path tag;
  std::string file;
  TagInfo info;  // of rank 0
  Retention keep;
};

CheckpointSaver::CheckpointSaver(std::filesystem::path root, ccl::Communicator& world, const SaveOptions& options)
    : root_(std::move(root)), ranks_(world.split(0, world.rank())), options_(options) {}

CheckpointSaver::~CheckpointSaver() {
  if (worker_.joinable()) worker_.join();
}

void CheckpointSaver::wait() {
  if (worker_.joinable()) worker_.join();
  failed_ = false;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void CheckpointSaver::save(Job& job, std::int64_t step, double monitored, bool stays) {
  wait();
  job.runner().settle();
  if (!copy_) copy_ = std::make_shared<Copy>();
  const auto copy = copy_;
  copy->tensors = tensors_of(job.step(), options_.masters, [&](TensorId t) { return job.runner().at(t); });
  std::size_t bytes = 0;
  for (const ShardTensor& t : copy->tensors) bytes += t.bytes();
  if (copy->size != bytes) copy->bytes = std::make_unique_for_overwrite<std::byte[]>(bytes), copy->size = bytes;
  std::size_t at = 0;
  for (ShardTensor& t : copy->tensors) {
    std::memcpy(copy->bytes.get() + at, t.data, t.bytes());
    t.data = copy->bytes.get() + at;
    at += t.bytes();
  }
  copy->tag = root_ / tag_name(step);
  copy->file = shard_name(job.step().mesh.shape(), job.step().place);
  copy->info = {.step = step, .files = {}, .layout = layout_words(job.step())};
  copy->info.monitor = options_.keep.monitor, copy->info.monitored = monitored;
  copy->info.origin = options_.origin;
  copy->keep = options_.keep;
  copy->keep.newest = copy->keep.newest || stays;
  if (job.step().config.lora.rank > 0) copy->info.lora_alpha = job.step().config.lora.alpha;
  for (Rank r = 0; r < job.step().mesh.ranks(); ++r)
    copy->info.files.push_back(shard_name(job.step().mesh.shape(), job.step().mesh.place(r)));
  if (!options_.asynchronous) return write(*copy);
  worker_ = std::thread([this, copy] {
    try {
      write(*copy);
    } catch (...) {
      error_ = std::current_exception();
      failed_ = true;
    }
  });
}

void CheckpointSaver::write(const Copy& copy) {
  const bool first = ranks_->rank() == 0;
  together(copy.tag, [&] {
    if (!first) return;
    std::filesystem::create_directories(copy.tag);
    std::filesystem::remove(copy.tag / "done");
    write_whole(copy.tag / "checkpoint", copy.file + "\n");
  });
  together(copy.tag, [&] { write_shard(copy.tag / copy.file, copy.tensors); });
  together(copy.tag, [&] {
    if (!first) return;
    write_done(copy.tag, copy.info);
    keep_tags(root_, copy.keep);
  });
}

// Runs `part` on every rank. If it throws on any rank, all ranks throw, so that none waits for one that has given up.
void CheckpointSaver::together(const std::filesystem::path& tag, const std::function<void()>& part) {
  std::exception_ptr error;
  std::int32_t failed = 0;
  try {
    part();
  } catch (...) {
    error = std::current_exception();
    failed = 1;
  }
  ranks_->all_reduce(&failed, &failed, 1, kernels::DType::i32);
  if (error) std::rethrow_exception(error);
  if (failed != 0)
    throw std::runtime_error(fmt::format("checkpoint {}: {} ranks could not write", tag.string(), failed));
}

bool has_optimizer_state(const CheckpointReader& source) {
  return std::ranges::any_of(source.names(), [](const std::string& name) {
    return name.starts_with(moment_alone) || name.starts_with(first_of_two);
  });
}

namespace {

void put(const RankStep& step, Runner& memory, const CheckpointReader& source, const std::string& name,
         const TensorSlice& slice, TensorId to) {
  std::vector<float> values(slice.elements());
  source.read(name, slice, values.data());
  const DType type = step.program.tensor(to).type;
  if (type == DType::f32)
    std::ranges::copy(values, memory.as<float>(to));
  else
    kernels::cast(DType::f32, values.data(), type, memory.at(to), values.size());
}

}  // namespace

std::string widest(const CheckpointReader& source, const std::string& name, DType type) {
  std::string saved = std::string(master) + name;
  return type == DType::f32 && source.has(saved) ? saved : name;
}

void load_parameters(const RankStep& step, Runner& memory, const CheckpointReader& source) {
  for (const Parameter& p : step.parameters.all())
    put(step, memory, source, widest(source, p.name, step.program.tensor(p.value).type), p.slice, p.value);
}

bool has_state(const RankStep& step, const CheckpointReader& source) {
  return std::ranges::all_of(step.states, [&](const OptimizerState& s) {
    if (s.slice.elements() == 0 || s.frozen()) return true;
    return source.has(first_moment(s)) && (s.second == no_tensor || source.has(second_moment(s)));
  });
}

bool load(Job& job, const CheckpointReader& source, bool wanted) {
  const RankStep& step = job.step();
  const bool state = wanted && has_state(step, source);
  job.runner().settle();
  Runner& memory = job.runner();
  const auto put = [&](const std::string& name, const TensorSlice& slice, TensorId to) {
    train::put(step, memory, source, name, slice, to);
  };
  const auto moment = [&](const std::string& name, const OptimizerState& s, TensorId to) {
    if (to == no_tensor) return;
    if (state) return put(name, s.slice, to);
    std::fill_n(memory.as<float>(to), s.elements(), 0.0F);
  };
  for (const OptimizerState& s : step.states) {
    const std::string& name = s.parameter->name;
    // An adapter that the source lacks keeps its initial values: the source was trained without it.
    if (source.has(name) || name.find(".lora_") == name.npos) {
      put(widest(source, name, step.program.tensor(s.parameter->value).type), s.parameter->slice, s.parameter->value);
      if (s.master != no_tensor && s.slice.elements() > 0) put(widest(source, name, DType::f32), s.slice, s.master);
    }
    if (s.slice.elements() == 0 || s.frozen()) continue;
    moment(first_moment(s), s, s.first);
    moment(second_moment(s), s, s.second);
  }
  return state;
}

bool merge_adapter(const CheckpointReader& source, const std::string& name, double alpha, DType type,
                   std::vector<float>& values) {
  constexpr std::string_view ending = ".weight";
  if (!name.ends_with(ending)) return false;
  const std::string stem = name.substr(0, name.size() - ending.size());
  const std::string a_name = stem + ".lora_A.weight", b_name = stem + ".lora_B.weight";
  if (!source.has(a_name) || !source.has(b_name)) return false;
  const TensorSlice a_slice = source.whole(a_name), b_slice = source.whole(b_name);
  std::vector<float> a(a_slice.elements()), b(b_slice.elements());
  source.read(widest(source, a_name, type), a_slice, a.data());
  source.read(widest(source, b_name, type), b_slice, b.data());
  const auto scale = static_cast<float>(alpha / static_cast<double>(a_slice.rows));
  kernels::matmul({b_slice.rows, a_slice.columns, a_slice.rows}, DType::f32, {b.data(), b_slice.columns},
                  {a.data(), a_slice.columns}, DType::f32, values.data(), a_slice.columns,
                  {.alpha = scale, .beta = 1, .threads = 1});
  return true;
}

double alpha_of(const CheckpointReader& source, const AdapterMergeOptions& merge) {
  const double alpha = merge.alpha != 0 ? merge.alpha : source.info().lora_alpha;
  if (merge.merge && !(alpha > 0))
    throw std::invalid_argument("the checkpoint does not say its adapters' alpha: expected --lora-alpha");
  return alpha;
}

void export_weights(const CheckpointReader& source, const std::filesystem::path& path,
                    const AdapterMergeOptions& merge) {
  const double alpha = alpha_of(source, merge);
  std::vector<ShardTensor> tensors;
  std::vector<std::vector<std::byte>> bytes;
  bool any = false;
  for (const std::string& name : source.names()) {
    if (name.find(':') != name.npos || (merge.merge && name.find(".lora_") != name.npos)) continue;
    const TensorSlice whole = source.whole(name);
    const DType type = source.type(name);
    std::vector<float> values(whole.elements());
    source.read(name, whole, values.data());
    if (merge.merge && merge_adapter(source, name, alpha, type, values)) any = true;
    bytes.push_back(encoded(type, values));
    tensors.push_back({name, type, whole, bytes.back().data()});
  }
  if (merge.merge && !any) throw std::invalid_argument("the checkpoint has no adapters to merge");
  write_shard(path, tensors);
}

}  // namespace trellis::train
