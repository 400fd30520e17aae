#include "device/libnrt/tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <vector>

#include "device/noexcept_release.h"

namespace trellis::device::nrt {
namespace {

constexpr std::size_t page = 4096;

std::size_t in_pages(std::size_t bytes) { return std::max<std::size_t>(1, (bytes + page - 1) / page) * page; }

// The device that copies between the two, and whose time the copy takes; null: both are host memory.
Device* device_of(const Storage& a, const Storage& b) { return a.device() != nullptr ? a.device() : b.device(); }

void move_bytes(Device* device, std::byte* to, const std::byte* from, std::size_t bytes) {
  const bool overlaps = to < from + bytes && from < to + bytes;
  if (device == nullptr || overlaps) std::memmove(to, from, bytes);
  if (device != nullptr && !overlaps) device->copy(to, from, bytes);
}

}  // namespace

Storage::Storage(std::shared_ptr<Device> device, int vnc, std::size_t bytes, const std::string& name)
    : device_(std::move(device)), vnc_(vnc), bytes_(bytes) {
  data_ = static_cast<std::byte*>(device_->allocate(bytes, name.empty() ? "tensors without name" : name));
}

Storage::Storage(std::size_t bytes) : bytes_(bytes) {
  void* const at =
      mmap(nullptr, in_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) refuse(Status::resource, "the host has no {} bytes for a tensor", bytes);
  data_ = static_cast<std::byte*>(at);
}

Storage::Storage(void* callers, std::size_t bytes)
    : bytes_(bytes), data_(static_cast<std::byte*>(callers)), own_(false) {}

Storage::~Storage() {
  if (!own_) return;
  if (!device_) {
    munmap(data_, in_pages(bytes_));
    return;
  }
  if (file_) {
    const Window window = device_->window();
    mmap(data_, in_pages(bytes_), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, window.fd,
         data_ - window.base);
  }
  give_back(*device_, data_);
}

int Storage::file() {
  const std::lock_guard lock(in_use_);
  if (!device_) refuse(Status::invalid, "memory of the host has no dma-buf; expected a tensor on a device");
  if (file_) return file_.number();
  net::Descriptor file(memfd_create("trellis-nrt-tensor", MFD_CLOEXEC));
  const std::size_t bytes = in_pages(bytes_);
  if (!file || ftruncate(file.number(), static_cast<off_t>(bytes)) != 0)
    throw std::system_error(errno, std::generic_category(), "a file for a tensor");
  void* const other = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (other == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mapping a tensor's file");
  std::memcpy(other, data_, bytes_);
  munmap(other, bytes);
  if (mmap(data_, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.number(), 0) == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "mapping a tensor's file");
  file_ = std::move(file);
  return file_.number();
}

TensorObject::Place TensorObject::place() const {
  const std::lock_guard lock(mutex_);
  if (!storage_) refuse(Status::invalid, "tensor '{}' has no storage; attach a buffer first", name_);
  return {storage_, offset_, bytes_};
}

TensorObject::Place TensorObject::part(std::size_t offset, std::size_t bytes) const {
  Place p = place();
  if (bytes > p.bytes || offset > p.bytes - bytes)
    refuse(Status::invalid, "{} bytes from byte {} of tensor '{}' go past its {} bytes", bytes, offset, name_, p.bytes);
  p.offset += offset;
  p.bytes = bytes;
  return p;
}

std::size_t TensorObject::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void TensorObject::attach(std::shared_ptr<Storage> storage) {
  const std::lock_guard lock(mutex_);
  bytes_ = storage->bytes();
  offset_ = 0;
  std::swap(storage_, storage);
}

void TensorObject::completed() {
  const std::lock_guard lock(mutex_);
  ++completions_;
  changed_.notify_all();
}

void TensorObject::reset_completions() {
  const std::lock_guard lock(mutex_);
  completions_ = 0;
}

bool TensorObject::wait_for_completions(std::uint64_t count, std::int64_t timeout_us) const {
  std::unique_lock lock(mutex_);
  const auto there = [&] { return completions_ >= count; };
  if (timeout_us < 0) return changed_.wait(lock, there), true;
  const std::int64_t most = 1'000'000LL * 86'400 * 365;
  return changed_.wait_for(lock, std::chrono::microseconds(std::min(timeout_us, most)), there);
}

void TensorSetObject::add(const std::string& name, std::shared_ptr<TensorObject> tensor, Tensor* handle) {
  const std::lock_guard lock(mutex_);
  entries_.insert_or_assign(name, Entry{std::move(tensor), handle});
}

std::map<std::string, std::shared_ptr<TensorObject>> TensorSetObject::all() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::shared_ptr<TensorObject>> out;
  for (const auto& [name, entry] : entries_) out.emplace(name, entry.tensor);
  return out;
}

Tensor* TensorSetObject::handle(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second.handle;
}

StorageLock::StorageLock(std::vector<Storage*> storages) : storages_(std::move(storages)) {
  std::ranges::sort(storages_);
  storages_.erase(std::unique(storages_.begin(), storages_.end()), storages_.end());
  for (Storage* s : storages_) s->in_use().lock();
}

StorageLock::~StorageLock() {
  for (Storage* s : storages_) s->in_use().unlock();
}

void copy_from_host(const TensorObject::Place& to, const void* host) {
  const StorageLock lock({to.storage.get()});
  move_bytes(to.storage->device(), to.data(), static_cast<const std::byte*>(host), to.bytes);
}

void copy_to_host(const TensorObject::Place& from, void* host) {
  const StorageLock lock({from.storage.get()});
  move_bytes(from.storage->device(), static_cast<std::byte*>(host), from.data(), from.bytes);
}

void copy_between(const TensorObject::Place& to, const TensorObject::Place& from) {
  const int a = to.storage->vnc(), b = from.storage->vnc();
  if (a >= 0 && b >= 0 && a != b)
    refuse(Status::invalid, "a copy from core {} to core {}: both tensors must be on the same core", b, a);
  const StorageLock lock({to.storage.get(), from.storage.get()});
  move_bytes(device_of(*to.storage, *from.storage), to.data(), from.data(), to.bytes);
}

void fill(const TensorObject::Place& p, int value) {
  const StorageLock lock({p.storage.get()});
  if (Device* const device = p.storage->device()) return device->fill(p.data(), static_cast<std::byte>(value), p.bytes);
  std::memset(p.data(), value, p.bytes);
}

}  // namespace trellis::device::nrt
