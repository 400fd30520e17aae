// Tensor sets and models: binding by name, loading, runs.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "device/libnrt/exports.h"
#include "device/neff/neff.h"
#include "device/neuron/dtype_conversion.h"
#include "device/program.h"

namespace trellis::device::nrt {
namespace {

constexpr std::size_t most_name = 1024;
constexpr int most_repeats = 1'000'000;

std::string name_of(const char* name) {
  expect_given(name, "the name");
  const std::size_t length = strnlen(name, most_name + 1);
  if (length > most_name) refuse(Status::invalid, "a name of more than {} characters", most_name);
  return {name, length};
}

void load(Runtime& r, const void* neff, std::size_t size, std::int32_t vnc, Model** out) {
  expect_given(out, "the handle's place");
  *out = nullptr;
  expect_given(neff, "the NEFF");
  if (vnc < -1) refuse(Status::invalid, "core {}: expected -1 for any, or one from 0 on", vnc);
  const std::int32_t core = vnc == -1 ? r.free_core() : vnc;
  auto device = r.core(core);
  *out = r.models.add<Model*>(std::make_shared<ModelObject>(std::move(device), core, r.next_model(),
                                                            std::span(static_cast<const std::byte*>(neff), size)));
}

void execute(Runtime& r, Model* model, const TensorSet* inputs, TensorSet* outputs, int times) {
  const auto object = r.models.get(model);
  if (times < 1 || times > most_repeats) refuse(Status::invalid, "{} runs: expected 1 to {}", times, most_repeats);
  const auto run = ModelObject::bind(object, *r.sets.get(inputs), *r.sets.get(outputs));
  const std::string& name = object->program().name();
  r.timed("nrt_execute", object->vnc(), 0, name,
          [&] { r.timed("nc_exec_running", object->vnc(), 0, name, [&] { run.execute(times); }); });
}

void cores_of(const Model* model, std::uint32_t* count) {
  const auto runtime = running();
  runtime->models.get(model);
  expect_given(count, "the count");
  *count = 1;
}

}  // namespace

Status nrt_allocate_tensor_set(TensorSet** out) {
  return call("nrt_allocate_tensor_set", [&](Runtime& r) {
    expect_given(out, "the handle's place");
    *out = r.sets.add<TensorSet*>(std::make_shared<TensorSetObject>());
  });
}

void nrt_destroy_tensor_set(TensorSet** set) {
  call("nrt_destroy_tensor_set", [&](Runtime& r) {
    expect_given(set, "the handle's place");
    r.sets.take(std::exchange(*set, nullptr));
  });
}

Status nrt_add_tensor_to_tensor_set(TensorSet* set, const char* name, Tensor* tensor) {
  return call("nrt_add_tensor_to_tensor_set", [&](Runtime& r) {
    const auto object = r.sets.get(set);
    object->add(name_of(name), r.tensors.get(tensor), tensor);
  });
}

Status nrt_get_tensor_from_tensor_set(TensorSet* set, const char* name, Tensor** out) {
  return call("nrt_get_tensor_from_tensor_set", [&](Runtime& r) {
    const auto object = r.sets.get(set);
    expect_given(out, "the handle's place");
    *out = object->handle(name_of(name));
    if (*out == nullptr) refuse(Status::failure, "the set has no tensor '{}'", name);
  });
}

// The number of cores is obsolete, and ignored.
Status nrt_load(const void* neff, std::size_t size, std::int32_t vnc, std::int32_t, Model** out) {
  return call("nrt_load", [&](Runtime& r) { load(r, neff, size, vnc, out); });
}

Status nrt_load_collectives(const void* neff, std::size_t size, std::int32_t vnc, std::int32_t, std::uint32_t id,
                            std::uint32_t devices, Model** out) {
  return call("nrt_load_collectives", [&](Runtime& r) {
    r.world.join(id, devices);
    load(r, neff, size, vnc, out);
  });
}

// A model that still runs lives until it is done.
Status nrt_unload(Model* model) {
  return call("nrt_unload", [&](Runtime& r) {
    r.inspection.keep_profile_of(*r.models.get(model));
    r.models.take(model);
  });
}

Status nrt_get_model_nc_count(const Model* model, std::uint32_t* count) {
  return guarded("nrt_get_model_nc_count", [&] { cores_of(model, count); });
}
Status nrt_get_model_vnc_count(const Model* model, std::uint32_t* count) {
  return guarded("nrt_get_model_vnc_count", [&] { cores_of(model, count); });
}
Status nrt_get_model_instance_count(Model* model, std::uint32_t* count) {
  return guarded("nrt_get_model_instance_count", [&] { cores_of(model, count); });
}

Status nrt_get_model_info(const Model* model, ModelInfo* out, std::size_t size, std::size_t* written) {
  return call("nrt_get_model_info", [&](Runtime& r) {
    const auto object = r.models.get(model);
    expect_given(out, "the structure");
    if (size < sizeof(ModelInfo) || size > 4096)
      refuse(Status::invalid, "a structure of {} bytes; expected {}", size, sizeof(ModelInfo));
    out->vnc = static_cast<std::uint32_t>(object->vnc());
    if (written != nullptr) *written = sizeof(ModelInfo);
  });
}

Status nrt_execute(Model* model, const TensorSet* inputs, TensorSet* outputs) {
  return call("nrt_execute", [&](Runtime& r) { execute(r, model, inputs, outputs, 1); });
}

Status nrt_execute_repeat(Model* model, const TensorSet* inputs, TensorSet* outputs, int times) {
  return call("nrt_execute_repeat", [&](Runtime& r) { execute(r, model, inputs, outputs, times); });
}

// Allocates one piece of memory for all: the array, and behind it the tensors' shapes, each of a single dimension, the
// number of elements.
Status nrt_get_model_tensor_info(Model* model, TensorInfoArray** out) {
  return call("nrt_get_model_tensor_info", [&](Runtime& r) {
    const auto& operands = r.models.get(model)->program().operands();
    expect_given(out, "the array's place");
    *out = nullptr;
    const std::size_t shapes_at = sizeof(TensorInfoArray) + operands.size() * sizeof(TensorInfo);
    auto* const memory = static_cast<std::byte*>(std::calloc(1, shapes_at + operands.size() * sizeof(std::uint32_t)));
    if (memory == nullptr) throw std::bad_alloc();
    auto* const head = new (memory) TensorInfoArray{operands.size()};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const ProgramOperand& o = operands[i];
      const NrtDType element = element_of(o.type).value_or(NrtDType::unknown);
      auto* const shape = new (memory + shapes_at + i * sizeof(std::uint32_t))
          std::uint32_t(static_cast<std::uint32_t>(o.bytes / size_of(o.type)));
      auto* const info = new (memory + sizeof(TensorInfoArray) + i * sizeof(TensorInfo))
          TensorInfo{{}, o.output ? TensorUsage::output : TensorUsage::input, o.bytes, element, shape, 1};
      std::memcpy(info->name, o.name.data(), std::min(o.name.size(), tensor_name_bytes - 1));
    }
    *out = head;
  });
}

Status nrt_free_model_tensor_info(TensorInfoArray* array) {
  return guarded("nrt_free_model_tensor_info", [&] {
    expect_given(array, "the array");
    std::free(array);
  });
}

}  // namespace trellis::device::nrt
