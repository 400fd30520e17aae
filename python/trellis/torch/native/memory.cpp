#include "trellis/torch/native/memory.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

#include "device/device.h"

namespace trellis::process_group {
namespace {

// The device lives as long as the process, since tensors may.
device::Device& host() {
  static const auto* device = new std::shared_ptr(device::host_of_process());
  return **device;
}

class WindowAllocator : public c10::Allocator {
 public:
  explicit WindowAllocator(std::size_t least) : least_(least) {}
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes < least_) return c10::GetDefaultCPUAllocator()->allocate(bytes);
    void* memory = host().allocate(bytes);
    return {memory, memory, [](void* m) { host().release(m); }, at::kCPU};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  const std::size_t least_;
};

}  // namespace

std::shared_ptr<c10::Allocator> window_allocator() {
  static const auto* allocator = new std::shared_ptr<c10::Allocator>(std::make_shared<WindowAllocator>(1));
  return *allocator;
}

at::Tensor tensor_in_window(at::IntArrayRef sizes, at::TensorOptions options) {
  return at::detail::empty_generic(sizes, window_allocator().get(), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                   c10::typeMetaToScalarType(options.dtype()), std::nullopt);
}

void use_window_for_tensors(bool on) {
  static WindowAllocator* large = new WindowAllocator(window_bytes);
  c10::SetCPUAllocator(on ? static_cast<c10::Allocator*>(large) : c10::GetDefaultCPUAllocator(), 100);
}

}  // namespace trellis::process_group
