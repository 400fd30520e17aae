// A NeuronCore through libnrt.so.1. Loaded programs run on the core; reduce(), divide() and launch(), on the host.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "device/backends.h"
#include "device/capabilities.h"
#include "device/channel.h"
#include "device/memory_accounting.h"
#include "device/memory_release_notifier.h"
#include "device/native_collective.h"
#include "device/neuron/channel.h"
#include "device/neuron/collective.h"
#include "device/neuron/program.h"
#include "device/neuron/stream.h"
#include "device/neuron/tensors_by_address.h"
#include "device/noexcept_release.h"
#include "device/program.h"
#include "device/topology.h"
#include "device/zero_copy_memory.h"
#include "kernels/reduce/divide.h"
#include "text/refuse.h"

namespace trellis::device {
namespace {

class NothingShared : public Shared {
  std::size_t bytes() const override { return 0; }
};

class Neuron : public Device {
 public:
  explicit Neuron(int core)
      : runtime_(NeuronRuntime::of_process()),
        topology_(runtime_->topology(core)),
        name_(fmt::format("neuron core {}", core)),
        core_(core),
        account_(name_),
        messages_(runtime_, tensors_, topology_.core),
        collectives_(runtime_, tensors_, core) {}
  ~Neuron() override {
    for (const void* at : tensors_.all()) give_back(*this, const_cast<void*>(at));
  }

  std::string_view name() const override { return name_; }
  Capabilities capabilities() const override { return runtime_->capabilities(); }
  std::string why_not(Capability c) const override { return runtime_->why_not(c); }
  const Topology& topology() const override { return topology_; }

  void* allocate(std::size_t bytes, std::string_view what) override;
  void release(void*) override;
  MemoryUse memory() const override;
  Window window() const override { return {}; }
  InWindow find(const void*, std::size_t bytes) const override { return {.outside = bytes}; }
  std::unique_ptr<Shared> share(void*, std::size_t) override { return std::make_unique<NothingShared>(); }
  std::unique_ptr<Attached> attach(void* data, std::size_t bytes) override {
    return std::make_unique<ZeroCopyMemory>(data, bytes);
  }
  Exported export_memory(const void*, std::size_t) override;
  std::size_t allocated_bytes() const override { return account_.use().used; }
  using Device::copy;
  using Device::fill;
  using Device::launch;
  void copy(void* dst, const void* src, std::size_t bytes, kernels::Stores) override;
  void fill(void* dst, std::byte value, std::size_t bytes) override;
  void reduce(kernels::Reduction, kernels::DType, std::span<const void* const>, void*, std::size_t,
              const kernels::ReduceOptions&) override;
  void divide(kernels::DType, void*, std::size_t, std::uint32_t) override;
  void launch(const KernelLaunch&) override;
  std::unique_ptr<LoadedProgram> load(std::span<const std::byte> neff) override {
    return std::make_unique<NeuronProgram>(runtime_, tensors_, core_, neff);
  }
  void copy(Stream&, void* dst, const void* src, std::size_t bytes) override;
  std::unique_ptr<Stream> stream() override;
  std::unique_ptr<Event> event() override { return std::make_unique<ThreadEvent>(std::make_shared<ThreadClock>()); }
  NativeCollectives* collectives() override {
    return capabilities().has(Capability::collectives) ? &collectives_ : nullptr;
  }
  ChannelFactory* channels() override { return capabilities().has(Capability::send_recv) ? &messages_ : nullptr; }

 private:
  class OnHost;
  const std::shared_ptr<NeuronRuntime> runtime_;
  const Topology topology_;
  const std::string name_;
  const int core_;
  MemoryAccount account_;
  TensorsByAddress tensors_;
  NeuronChannelFactory messages_;
  NeuronCollectives collectives_;
  std::atomic<int> streams_made_ = 0;
};

// A copy of device memory in the host's for the time of one operation; the host's own memory is used as it is.
class Neuron::OnHost {
 public:
  OnHost(Neuron& device, const void* data, std::size_t bytes, bool reads)
      : device_(device), data_(data), bytes_(bytes) {
    if (bytes == 0 || !device.tensors_.find(data, bytes)) return;
    copy_.resize(bytes);
    if (reads) device.copy(copy_.data(), data, bytes, kernels::Stores::cached);
  }
  void* at() { return copy_.empty() ? const_cast<void*>(data_) : copy_.data(); }
  void write_back() {
    if (!copy_.empty()) device_.copy(const_cast<void*>(data_), copy_.data(), bytes_, kernels::Stores::cached);
  }

 private:
  Neuron& device_;
  const void* data_;
  std::size_t bytes_;
  std::vector<std::byte> copy_;
};

void* Neuron::allocate(std::size_t bytes, std::string_view what) {
  const nrt::NrtLibrary& l = runtime_->library();
  nrt::Tensor* tensor = nullptr;
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  const nrt::Status status =
      l.nrt_tensor_allocate(nrt::TensorPlacement::device, core_, size, std::string(what).c_str(), &tensor);
  if (status == nrt::Status::resource) throw OutOfMemory(name_, what, bytes, memory());
  runtime_->check(status, "nrt_tensor_allocate");
  void* const at = l.nrt_tensor_get_va(tensor);
  const nrt::Status cleared = l.nrt_tensor_memset(tensor, 0, 0, size);
  if (at == nullptr || cleared != nrt::Status::success) {
    l.nrt_tensor_free(&tensor);
    if (at == nullptr) throw Unsupported(name_ + ": nrt_tensor_get_va gives no address: device memory is not mapped");
    runtime_->check(cleared, "nrt_tensor_memset");
  }
  account_.reserve(bytes, what);
  account_.hold(at, bytes, what);
  tensors_.add(at, size, tensor);
  const bool exports = capabilities().has(Capability::export_memory);
  watched_memory().begins(static_cast<std::byte*>(at), size, exports ? this : nullptr);
  return at;
}

void Neuron::release(void* pointer) {
  if (pointer == nullptr) return;
  nrt::Tensor* tensor = tensors_.remove(pointer);
  if (tensor == nullptr) text::refuse("release: {} was not allocated here", pointer);
  if (const auto range = watched_memory().find(pointer, 1)) watched_memory().ends(range->begin, range->bytes);
  account_.release(pointer);
  runtime_->library().nrt_tensor_free(&tensor);
}

MemoryUse Neuron::memory() const {
  MemoryUse use = account_.use();
  const nrt::NrtLibrary& l = runtime_->library();
  if (l.nrt_get_vnc_memory_stats == nullptr) return use;
  nrt::MemoryStats stats{};
  std::size_t written = 0;
  runtime_->call(l.nrt_get_vnc_memory_stats, "nrt_get_vnc_memory_stats", static_cast<std::uint32_t>(core_), &stats,
                 sizeof stats, &written);
  use.used = stats.bytes_used, use.limit = stats.bytes_limit;
  return use;
}

Exported Neuron::export_memory(const void* data, std::size_t bytes) {
  const auto in = tensors_.find(data, bytes);
  if (!in) text::refuse("export_memory: {} is not memory of {}", data, name_);
  int fd = -1;
  // The runtime exports only from the beginning of a tensor on, so what lies before the range is exported too.
  runtime_->call(runtime_->library().nrt_get_dmabuf_fd, "nrt_get_dmabuf_fd",
                 reinterpret_cast<std::uint64_t>(data) - in->offset, std::uint64_t{in->offset + bytes}, &fd);
  return {Exported::Kind::dmabuf, fd, in->offset, bytes};
}

void Neuron::copy(void* dst, const void* src, std::size_t bytes, kernels::Stores stores) {
  if (bytes == 0) return;
  const auto to = tensors_.find(dst, bytes), from = tensors_.find(src, bytes);
  const nrt::NrtLibrary& l = runtime_->library();
  if (to && from)
    runtime_->call(l.nrt_tensor_copy, "nrt_tensor_copy", from->tensor, from->offset, to->tensor, to->offset, bytes);
  else if (to)
    runtime_->call(l.nrt_tensor_write, "nrt_tensor_write", to->tensor, src, to->offset, bytes);
  else if (from)
    runtime_->call(l.nrt_tensor_read, "nrt_tensor_read", from->tensor, dst, from->offset, bytes);
  else
    kernels::copy(dst, src, bytes, stores);
}

void Neuron::copy(Stream& stream, void* dst, const void* src, std::size_t bytes) {
  const auto to = tensors_.find(dst, bytes), from = tensors_.find(src, bytes);
  auto* const queues = dynamic_cast<NeuronStream*>(&stream);
  if (queues == nullptr || bytes == 0 || (!to && !from)) return Device::copy(stream, dst, src, bytes);
  const nrt::NrtLibrary& l = runtime_->library();
  NeuronStream::Queued q;
  if (to && from) {
    q.unit = nrt::ExecutionUnit::tensor_op, q.function = "nrta_tensor_copy";
    q.hand_in = [=, &l](int queue, nrt::ErrorTracker* errors, nrt::Sequence* s) {
      return l.nrta_tensor_copy(from->tensor, from->offset, to->tensor, to->offset, bytes, queue, errors, s);
    };
  } else if (to) {
    q.unit = nrt::ExecutionUnit::tensor_write, q.function = "nrta_tensor_write";
    q.hand_in = [=, &l](int queue, nrt::ErrorTracker* errors, nrt::Sequence* s) {
      return l.nrta_tensor_write(to->tensor, src, to->offset, bytes, queue, errors, s);
    };
  } else {
    q.unit = nrt::ExecutionUnit::tensor_read, q.function = "nrta_tensor_read";
    q.hand_in = [=, &l](int queue, nrt::ErrorTracker* errors, nrt::Sequence* s) {
      return l.nrta_tensor_read(dst, from->tensor, from->offset, bytes, queue, errors, s);
    };
  }
  queues->add(std::move(q));
}

std::unique_ptr<Stream> Neuron::stream() {
  constexpr int queues = 2;  // that a core has for each kind of copy
  if (!capabilities().has(Capability::async_queues)) return std::make_unique<ThreadStream>();
  return std::make_unique<NeuronStream>(runtime_, core_, streams_made_++ % queues);
}

void Neuron::fill(void* dst, std::byte value, std::size_t bytes) {
  if (bytes == 0) return;
  const auto to = tensors_.find(dst, bytes);
  if (!to) {
    std::memset(dst, std::to_integer<int>(value), bytes);
    return;
  }
  runtime_->call(runtime_->library().nrt_tensor_memset, "nrt_tensor_memset", to->tensor, std::uint64_t{to->offset},
                 std::to_integer<int>(value), bytes);
}

void Neuron::reduce(kernels::Reduction op, kernels::DType type, std::span<const void* const> sources, void* dst,
                    std::size_t n, const kernels::ReduceOptions& options) {
  const std::size_t bytes = n * size_of(type);
  std::vector<OnHost> here;
  std::vector<const void*> at;
  for (const void* source : sources) here.emplace_back(*this, source, bytes, true);
  for (OnHost& one : here) at.push_back(one.at());
  OnHost to(*this, dst, bytes, false);
  kernels::reduce(op, type, at, to.at(), n, options);
  to.write_back();
}

void Neuron::divide(kernels::DType type, void* data, std::size_t n, std::uint32_t divisor) {
  OnHost here(*this, data, n * size_of(type), true);
  kernels::divide(type, here.at(), n, divisor);
  here.write_back();
}

void Neuron::launch(const KernelLaunch& what) {
  const kernels::Kernel& kernel = check_launch(what);
  KernelLaunch here = what;
  std::vector<OnHost> writes, reads;
  for (std::size_t i = 0; i < what.writes.size(); ++i)
    writes.emplace_back(*this, what.writes[i], what.n * size_of(kernel.writes[i]), true);
  for (std::size_t i = 0; i < what.reads.size(); ++i)
    reads.emplace_back(*this, what.reads[i], what.n * size_of(kernel.reads[std::min(i, kernel.reads.size() - 1)]),
                       true);
  for (std::size_t i = 0; i < writes.size(); ++i) here.writes[i] = writes[i].at();
  for (std::size_t i = 0; i < reads.size(); ++i) here.reads[i] = reads[i].at();
  run_launch(here);
  for (OnHost& one : writes) one.write_back();
}

std::vector<std::string> names() {
  return NeuronRuntime::missing().empty() ? std::vector<std::string>{"neuron"} : std::vector<std::string>{};
}

const RegisteredBackend neuron({.name = "neuron",
                                .pattern = "neuron",
                                .summary = "a NeuronCore, through libnrt.so.1",
                                .open = [](std::string_view, const Opening& o) -> std::shared_ptr<Device> {
                                  return std::make_shared<Neuron>(o.core);
                                },
                                .names = names,
                                .missing = NeuronRuntime::missing});

}  // namespace
}  // namespace trellis::device
