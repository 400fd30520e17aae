#include "device/neuron/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "device/backends.h"
#include "device/neff/neff.h"
#include "device/neuron/dtype_conversion.h"
#include "device/neuron/stream.h"
#include "device/neuron/tensor_view.h"

namespace trellis::device {

// The tensor sets of one run, of inputs and of outputs, and the tensors that stand for its operands' memory.
class NeuronProgram::Sets {
 public:
  Sets(const NeuronProgram& p, const std::vector<Binding>& bindings) : runtime_(p.runtime_) {
    const nrt::NrtLibrary& l = runtime_->library();
    try {
      runtime_->call(l.nrt_allocate_tensor_set, "nrt_allocate_tensor_set", &inputs);
      runtime_->call(l.nrt_allocate_tensor_set, "nrt_allocate_tensor_set", &outputs);
      for (const ProgramOperand& o : p.operands_) {
        const Binding& b = *std::ranges::find(bindings, o.name, &Binding::name);
        views_.emplace_back(*runtime_, p.tensors_, b.data, b.bytes, o.name);
        runtime_->call(l.nrt_add_tensor_to_tensor_set, "nrt_add_tensor_to_tensor_set", o.output ? outputs : inputs,
                       o.name.c_str(), views_.back().tensor());
      }
    } catch (...) {
      destroy_sets();
      throw;
    }
  }
  ~Sets() { destroy_sets(); }
  Sets(const Sets&) = delete;
  Sets& operator=(const Sets&) = delete;
  nrt::TensorSet *inputs = nullptr, *outputs = nullptr;

 private:
  void destroy_sets() {
    for (nrt::TensorSet** set : {&inputs, &outputs})
      if (*set != nullptr) runtime_->library().nrt_destroy_tensor_set(set);
  }
  const std::shared_ptr<NeuronRuntime> runtime_;
  std::vector<TensorView> views_;
};

NeuronProgram::NeuronProgram(std::shared_ptr<NeuronRuntime> runtime, const TensorsByAddress& tensors, int core,
                             std::span<const std::byte> neff)
    : runtime_(std::move(runtime)), tensors_(tensors), core_(core) {
  const nrt::NrtLibrary& l = runtime_->library();
  name_ = neff.size() >= neff_header_bytes ? read_neff(neff).header.name : "program";
  runtime_->call(l.nrt_load, "nrt_load", static_cast<const void*>(neff.data()), neff.size(), core_, -1, &model_);
  nrt::TensorInfoArray* array = nullptr;
  try {
    runtime_->call(l.nrt_get_model_tensor_info, "nrt_get_model_tensor_info", model_, &array);
  } catch (...) {
    l.nrt_unload(model_);
    throw;
  }
  const auto* const info = reinterpret_cast<const nrt::TensorInfo*>(array + 1);
  for (std::uint64_t i = 0; i < array->tensor_count; ++i)
    operands_.push_back({std::string(info[i].name, strnlen(info[i].name, nrt::tensor_name_bytes)), info[i].size,
                         type_of(info[i].dtype), info[i].usage == nrt::TensorUsage::output});
  l.nrt_free_model_tensor_info(array);
}

NeuronProgram::~NeuronProgram() { runtime_->library().nrt_unload(model_); }

void NeuronProgram::run(const std::vector<Binding>& bindings, Stream* stream) {
  check_bindings(name_, operands_, bindings);
  if (stream == nullptr) return execute(bindings);
  auto* const queues = dynamic_cast<NeuronStream*>(stream);
  if (queues == nullptr) return stream->submit([this, bindings] { execute(bindings); });
  const auto sets = std::make_shared<Sets>(*this, bindings);
  queues->add({.unit = nrt::ExecutionUnit::compute,
               .hand_in =
                   [this, sets](int queue, nrt::ErrorTracker* errors, nrt::Sequence* sequence) {
                     return runtime_->library().nrta_execute_schedule(model_, sets->inputs, sets->outputs, queue,
                                                                      errors, sequence);
                   },
               .function = "nrta_execute_schedule",
               .after = [this, sets, begin = wall_time()] { time_ = wall_time() - begin; }});
}

void NeuronProgram::execute(const std::vector<Binding>& bindings) {
  const Sets sets(*this, bindings);
  const Time begin = wall_time();
  runtime_->call(runtime_->library().nrt_execute, "nrt_execute", model_, sets.inputs, sets.outputs);
  time_ = wall_time() - begin;
}

std::string NeuronProgram::profile() const {
  const nrt::NrtLibrary& l = runtime_->library();
  const auto file = std::filesystem::temp_directory_path() /
                    fmt::format("trellis-profile-{}-{}", getpid(), static_cast<const void*>(this));
  runtime_->call(l.nrt_profile_start, "nrt_profile_start", model_, file.c_str());
  runtime_->call(l.nrt_profile_stop, "nrt_profile_stop", file.c_str());
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  std::filesystem::remove(file);
  return text.str();
}

}  // namespace trellis::device
