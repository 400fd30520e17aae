// Tensors: allocation, copies, slices.
#include <cstring>
#include <utility>

#include "device/libnrt/exports.h"

namespace trellis::device::nrt {
namespace {

std::string text_of(const char* name) { return name == nullptr ? "" : std::string(name, strnlen(name, 1024)); }

std::shared_ptr<Storage> new_storage(Runtime& r, TensorPlacement placement, int vnc, std::size_t bytes,
                                     const std::string& name) {
  if (bytes == 0) refuse(Status::invalid, "a tensor of 0 bytes; expected some");
  if (placement == TensorPlacement::host) return std::make_shared<Storage>(bytes);
  if (placement == TensorPlacement::virtual_memory)
    refuse(Status::invalid, "virtual placement: SDK 2.30 has removed it; expected device or host");
  if (placement != TensorPlacement::device)
    refuse(Status::invalid, "placement {}: expected 0 or 1", static_cast<int>(placement));
  auto storage = std::make_shared<Storage>(r.core(vnc), vnc, bytes, name);
  r.remember(storage);
  return storage;
}

enum class Way : std::uint8_t { read, write };

void each_of_batch(Runtime& r, const TensorBatch* batches, std::uint64_t count, Way way) {
  if (count != 0) expect_given(batches, "the batches");
  if (count > (1 << 20)) refuse(Status::invalid, "{} batches; expected at most {}", count, 1 << 20);
  struct Part {
    TensorObject::Place place;
    void* buffer;
  };
  std::vector<Part> parts;  // all are checked before anything is copied
  for (std::uint64_t b = 0; b < count; ++b) {
    const auto tensor = r.tensors.get(batches[b].tensor);
    if (batches[b].num_ops != 0) expect_given(batches[b].ops, "the operations of a batch");
    for (std::uint32_t i = 0; i < batches[b].num_ops; ++i) {
      const BatchOp& op = batches[b].ops[i];
      if (op.size != 0) expect_given(op.buffer, "the buffer of an operation");
      parts.push_back({tensor->part(op.offset, op.size), op.buffer});
    }
  }
  for (const Part& p : parts) way == Way::read ? copy_to_host(p.place, p.buffer) : copy_from_host(p.place, p.buffer);
}

}  // namespace

Status nrt_tensor_allocate(TensorPlacement placement, int vnc, std::size_t bytes, const char* name, Tensor** out) {
  return call("nrt_tensor_allocate", [&](Runtime& r) {
    expect_given(out, "the handle's place");
    *out = nullptr;
    const std::string text = text_of(name);
    auto storage = new_storage(r, placement, vnc, bytes, text);
    *out = r.tensors.add<Tensor*>(std::make_shared<TensorObject>(text, std::move(storage), 0, bytes));
  });
}

Status nrt_tensor_allocate_empty(const char* name, Tensor** out) {
  return call("nrt_tensor_allocate_empty", [&](Runtime& r) {
    expect_given(out, "the handle's place");
    *out = r.tensors.add<Tensor*>(std::make_shared<TensorObject>(text_of(name), nullptr, 0, 0));
  });
}

Status nrt_tensor_attach_buffer(Tensor* tensor, void* buffer, std::size_t bytes) {
  return call("nrt_tensor_attach_buffer", [&](Runtime& r) {
    const auto object = r.tensors.get(tensor);
    expect_given(buffer, "the buffer");
    if (bytes == 0) refuse(Status::invalid, "a buffer of 0 bytes; expected some");
    object->attach(std::make_shared<Storage>(buffer, bytes));
  });
}

Status nrt_tensor_allocate_slice(const Tensor* source, std::size_t offset, std::size_t bytes, const char* name,
                                 Tensor** out) {
  return call("nrt_tensor_allocate_slice", [&](Runtime& r) {
    expect_given(out, "the handle's place");
    *out = nullptr;
    TensorObject::Place p = r.tensors.get(source)->part(offset, bytes);
    *out = r.tensors.add<Tensor*>(std::make_shared<TensorObject>(text_of(name), p.storage, p.offset, bytes));
  });
}

void nrt_tensor_free(Tensor** tensor) {
  call("nrt_tensor_free", [&](Runtime& r) {
    expect_given(tensor, "the handle's place");
    r.tensors.take(std::exchange(*tensor, nullptr));
  });
}

Status nrt_tensor_read(const Tensor* tensor, void* buffer, std::size_t offset, std::size_t size) {
  return call("nrt_tensor_read", [&](Runtime& r) {
    const auto object = r.tensors.get(tensor);
    if (size != 0) expect_given(buffer, "the buffer");
    const auto part = object->part(offset, size);
    r.timed("nrt_tensor_read", part.storage->vnc(), size, object->name(), [&] { copy_to_host(part, buffer); });
  });
}

Status nrt_tensor_write(Tensor* tensor, const void* buffer, std::size_t offset, std::size_t size) {
  return call("nrt_tensor_write", [&](Runtime& r) {
    const auto object = r.tensors.get(tensor);
    if (size != 0) expect_given(buffer, "the buffer");
    const auto part = object->part(offset, size);
    r.timed("nrt_tensor_write", part.storage->vnc(), size, object->name(), [&] { copy_from_host(part, buffer); });
  });
}

// Ignores `unsafe`, which asks not to wait for writes in progress: every call waits for them here.
Status nrt_tensor_read_batch(const TensorBatch* batches, std::uint64_t count, bool) {
  return call("nrt_tensor_read_batch", [&](Runtime& r) { each_of_batch(r, batches, count, Way::read); });
}

Status nrt_tensor_write_batch(const TensorBatch* batches, std::uint64_t count, bool) {
  return call("nrt_tensor_write_batch", [&](Runtime& r) { each_of_batch(r, batches, count, Way::write); });
}

Status nrt_tensor_copy(const Tensor* from, std::size_t from_offset, Tensor* to, std::size_t to_offset,
                       std::size_t size) {
  return call("nrt_tensor_copy", [&](Runtime& r) {
    const auto a = r.tensors.get(from)->part(from_offset, size);
    const auto object = r.tensors.get(to);
    const auto b = object->part(to_offset, size);
    const int vnc = b.storage->vnc() >= 0 ? b.storage->vnc() : a.storage->vnc();
    r.timed("nrt_tensor_copy", vnc, size, object->name(), [&] { copy_between(b, a); });
  });
}

std::size_t nrt_tensor_get_size(const Tensor* tensor) {
  return guarded_value("nrt_tensor_get_size", std::size_t{0}, [&] { return running()->tensors.get(tensor)->bytes(); });
}

Status nrt_tensor_memset(Tensor* tensor, std::uint64_t offset, int value, std::size_t size) {
  return call("nrt_tensor_memset", [&](Runtime& r) {
    const auto object = r.tensors.get(tensor);
    const auto part = object->part(offset, size);
    r.timed("nrt_tensor_memset", part.storage->vnc(), size, object->name(), [&] { fill(part, value); });
  });
}

void* nrt_tensor_get_va(const Tensor* tensor) {
  return guarded_value("nrt_tensor_get_va", static_cast<void*>(nullptr),
                       [&]() -> void* { return running()->tensors.get(tensor)->place().data(); });
}

Status nrt_tensor_check_output_completion(const Tensor* tensor, std::int64_t timeout_us, std::uint64_t count) {
  return guarded("nrt_tensor_check_output_completion", [&] {
    const auto object = running()->tensors.get(tensor);  // the runtime may be closed while we wait
    if (!object->wait_for_completions(count, timeout_us))
      refuse(Status::timeout, "tensor '{}' was not written {} times within {} us", object->name(), count, timeout_us);
  });
}

Status nrt_tensor_reset_output_completion(Tensor* tensor) {
  return call("nrt_tensor_reset_output_completion", [&](Runtime& r) { r.tensors.get(tensor)->reset_completions(); });
}

}  // namespace trellis::device::nrt
