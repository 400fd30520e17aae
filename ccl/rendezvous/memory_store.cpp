#include <condition_variable>
#include <mutex>

#include "ccl/rendezvous/notes.h"
#include "ccl/store.h"

namespace trellis::ccl {
namespace {

class MemoryStore : public Store {
 public:
  void set(std::string_view key, std::span<const std::byte> value) override {
    {
      const std::lock_guard lock(mutex_);
      notes_.set(key, value);
    }
    changed_.notify_all();
  }

  Bytes get(std::string_view key, Deadline deadline) override {
    check_key(key);
    const Deadline asked_at = Clock::now();
    std::unique_lock lock(mutex_);
    const Bytes* note = nullptr;
    if (!changed_.wait_until(lock, deadline, [&] { return (note = notes_.find(key)) != nullptr; }))
      throw_no_note(key, asked_at, "this process's store");
    return *note;
  }

  std::int64_t add(std::string_view key, std::int64_t amount) override {
    std::int64_t sum = 0;
    {
      const std::lock_guard lock(mutex_);
      sum = notes_.add(key, amount);
    }
    changed_.notify_all();
    return sum;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Notes notes_;
};

}  // namespace

std::shared_ptr<Store> memory_store() { return std::make_shared<MemoryStore>(); }

}  // namespace trellis::ccl
