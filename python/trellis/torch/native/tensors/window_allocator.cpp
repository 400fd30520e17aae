#include "trellis/torch/native/tensors/window_allocator.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

#include <pthread.h>
#include <unistd.h>

#include <mutex>

#include "device/device.h"

namespace trellis::process_group {
namespace {

// The device lives as long as the process, since tensors may. A forked process gets one of its own.
const std::shared_ptr<device::Device>& host() {
  struct Kept {
    std::once_flag once = {};
    std::shared_ptr<device::Device> device = {};
  };
  static Kept* kept = [] {
    pthread_atfork(nullptr, nullptr, [] { kept = new Kept; });
    return new Kept;
  }();
  std::call_once(kept->once, [] { kept->device = device::host_of_process(); });
  return kept->device;
}

// Memory of a tensor, which only the process that allocated it may give back.
struct WindowMemory {
  std::shared_ptr<device::Device> device;
  void* memory;
  pid_t owner;

  static void release(void* self) {
    const std::unique_ptr<WindowMemory> held(static_cast<WindowMemory*>(self));
    if (held->owner == getpid()) held->device->release(held->memory);
  }
};

class WindowAllocator : public c10::Allocator {
 public:
  explicit WindowAllocator(std::size_t least) : least_(least) {}
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes < least_) return c10::GetDefaultCPUAllocator()->allocate(bytes);
    auto held = std::make_unique<WindowMemory>(host(), nullptr, getpid());
    void* const memory = held->memory = held->device->allocate(bytes);
    return {memory, held.release(), &WindowMemory::release, at::kCPU};
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
