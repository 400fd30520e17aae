// Tensors: bytes on a core or on the host, slices of them, and sets of them by name.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "device/device.h"
#include "device/libnrt/status_error.h"
#include "net/descriptor.h"

namespace trellis::device::nrt {

// Memory behind one tensor or several slices. One writer or many readers at a time.
class Storage {
 public:
  Storage(std::shared_ptr<Device>, int vnc, std::size_t bytes, const std::string& name);  // on a core
  explicit Storage(std::size_t bytes);                                                    // on the host
  Storage(void* callers, std::size_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  int vnc() const { return vnc_; }  // -1: the host
  Device* device() const { return device_.get(); }
  std::mutex& in_use() { return in_use_; }
  // A file descriptor of this memory, from its start, which others may map.
  int file();

 private:
  const std::shared_ptr<Device> device_;
  const int vnc_ = -1;
  const std::size_t bytes_;
  std::byte* data_ = nullptr;
  bool own_ = true;
  std::mutex in_use_;
  net::Descriptor file_;  // the file that has its pages; none: nobody has asked for one yet
};

class TensorObject {
 public:
  TensorObject(std::string name, std::shared_ptr<Storage> storage, std::size_t offset, std::size_t bytes)
      : name_(std::move(name)), storage_(std::move(storage)), offset_(offset), bytes_(bytes) {}

  const std::string& name() const { return name_; }
  struct Place {
    std::shared_ptr<Storage> storage;
    std::size_t offset = 0;
    std::size_t bytes = 0;
    std::byte* data() const { return storage->data() + offset; }
  };
  Place place() const;                                      // of the whole tensor; refuses one without storage
  Place part(std::size_t offset, std::size_t bytes) const;  // refuses what goes past the end
  std::size_t bytes() const;
  void attach(std::shared_ptr<Storage>);

  // Counts an execution that has written this tensor.
  void completed();
  void reset_completions();
  bool wait_for_completions(std::uint64_t count, std::int64_t timeout_us) const;

 private:
  const std::string name_;
  mutable std::mutex mutex_;
  std::shared_ptr<Storage> storage_;
  std::size_t offset_, bytes_;
  mutable std::condition_variable changed_;
  std::uint64_t completions_ = 0;
};

class TensorSetObject {
 public:
  void add(const std::string& name, std::shared_ptr<TensorObject>, Tensor* handle);
  std::map<std::string, std::shared_ptr<TensorObject>> all() const;
  Tensor* handle(const std::string& name) const;  // null: none

 private:
  struct Entry {
    std::shared_ptr<TensorObject> tensor;
    Tensor* handle;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

// Locks all of these, each once, in an order that is the same for all threads.
class StorageLock {
 public:
  explicit StorageLock(std::vector<Storage*>);
  ~StorageLock();
  StorageLock(const StorageLock&) = delete;
  StorageLock& operator=(const StorageLock&) = delete;

 private:
  std::vector<Storage*> storages_;
};

void copy_from_host(const TensorObject::Place&, const void* host);
void copy_to_host(const TensorObject::Place&, void* host);
// Copies; refuses to copy between two cores' memory, as the headers say.
void copy_between(const TensorObject::Place& to, const TensorObject::Place& from);
void fill(const TensorObject::Place&, int value);

}  // namespace trellis::device::nrt
