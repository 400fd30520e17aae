#include "device/neuron/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "device/neff/neff.h"
#include "device/neuron/element.h"
#include "device/neuron/wait.h"

namespace trellis::device {
namespace {

using kernels::DType;
constexpr auto patience = std::chrono::minutes(5);  // with one run of a program

}  // namespace

// The two sets of one run. A slice stands for an operand that is a part of a tensor; the host's memory is attached.
class NeuronProgram::Sets {
 public:
  Sets(const NeuronProgram& p, const std::vector<Binding>& bindings) : runtime_(*p.runtime_) {
    const nrt::Library& l = runtime_.library();
    try {
      runtime_.call(l.nrt_allocate_tensor_set, "nrt_allocate_tensor_set", &inputs);
      runtime_.call(l.nrt_allocate_tensor_set, "nrt_allocate_tensor_set", &outputs);
      for (const Operand& o : p.operands_) {
        const Binding& b = *std::ranges::find(bindings, o.name, &Binding::name);
        nrt::Tensor* slice = nullptr;
        if (const auto in = p.tensors_.find(b.data, b.bytes)) {
          runtime_.call(l.nrt_tensor_allocate_slice, "nrt_tensor_allocate_slice", in->tensor, in->offset, b.bytes,
                        o.name.c_str(), &slice);
        } else {
          runtime_.call(l.nrt_tensor_allocate_empty, "nrt_tensor_allocate_empty", o.name.c_str(), &slice);
          runtime_.call(l.nrt_tensor_attach_buffer, "nrt_tensor_attach_buffer", slice, b.data, b.bytes);
        }
        slices_.push_back(slice);
        runtime_.call(l.nrt_add_tensor_to_tensor_set, "nrt_add_tensor_to_tensor_set", o.output ? outputs : inputs,
                      o.name.c_str(), slice);
      }
    } catch (...) {
      clear();
      throw;
    }
  }
  ~Sets() { clear(); }
  Sets(const Sets&) = delete;
  Sets& operator=(const Sets&) = delete;
  nrt::TensorSet *inputs = nullptr, *outputs = nullptr;

 private:
  void clear() {
    const nrt::Library& l = runtime_.library();
    for (nrt::TensorSet** set : {&inputs, &outputs})
      if (*set != nullptr) l.nrt_destroy_tensor_set(set);
    for (nrt::Tensor*& slice : slices_) l.nrt_tensor_free(&slice);
    slices_.clear();
  }
  const NeuronRuntime& runtime_;
  std::vector<nrt::Tensor*> slices_;
};

NeuronProgram::NeuronProgram(std::shared_ptr<NeuronRuntime> runtime, const TensorsByAddress& tensors, int core,
                             std::span<const std::byte> neff)
    : runtime_(std::move(runtime)), tensors_(tensors), core_(core) {
  const nrt::Library& l = runtime_->library();
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
                         type_of(info[i].dtype), info[i].usage == nrt::Usage::output});
  l.nrt_free_model_tensor_info(array);
}

NeuronProgram::~NeuronProgram() { runtime_->library().nrt_unload(model_); }

void NeuronProgram::run(const std::vector<Binding>& bindings, Stream* stream) {
  check_bindings(name_, operands_, bindings);
  if (stream == nullptr) return execute(bindings);
  stream->submit([this, bindings] { execute(bindings); });
}

void NeuronProgram::execute(const std::vector<Binding>& bindings) {
  const Sets sets(*this, bindings);
  const Time begin = wall_time();
  if (runtime_->capabilities().has(Capability::async_queues))
    execute_queued(sets);
  else
    runtime_->call(runtime_->library().nrt_execute, "nrt_execute", model_, sets.inputs, sets.outputs);
  time_ = wall_time() - begin;
}

void NeuronProgram::execute_queued(const Sets& sets) {
  const nrt::Library& l = runtime_->library();
  nrt::ErrorTracker* errors = nullptr;
  runtime_->call(l.nrta_error_tracker_create, "nrta_error_tracker_create", static_cast<std::uint32_t>(core_), &errors);
  const auto destroy = [&l](nrt::ErrorTracker* e) { l.nrta_error_tracker_destroy(e); };
  const std::unique_ptr<nrt::ErrorTracker, decltype(destroy)> kept(errors, destroy);
  nrt::Sequence sequence = 0;
  runtime_->call(l.nrta_execute_schedule, "nrta_execute_schedule", model_, sets.inputs, sets.outputs, 0, errors,
                 &sequence);
  wait_for(*runtime_, sequence, patience);
  const nrt::AsyncError* list = nullptr;
  std::size_t count = 0;
  runtime_->call(l.nrta_error_tracker_get_list, "nrta_error_tracker_get_list", errors, &list, &count);
  if (count != 0) runtime_->check(static_cast<nrt::Status>(list[0].error_code), "nrta_execute_schedule");
}

std::string NeuronProgram::profile() const {
  const nrt::Library& l = runtime_->library();
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
