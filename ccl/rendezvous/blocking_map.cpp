#include "ccl/rendezvous/blocking_map.h"

namespace trellis::ccl {
namespace {

std::optional<Bytes> copy_of(const Bytes* note) { return note == nullptr ? std::nullopt : std::optional(*note); }

}  // namespace

void BlockingMap::set(std::string_view key, std::span<const std::byte> value) {
  {
    const std::lock_guard lock(mutex_);
    notes_.set(key, value);
  }
  changed_.notify_all();
}

std::optional<Bytes> BlockingMap::find(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  return copy_of(notes_.find(key));
}

std::optional<Bytes> BlockingMap::find_before(std::string_view key, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const Bytes* note = nullptr;
  changed_.wait_until(lock, deadline, [&] { return (note = notes_.find(key)) != nullptr; });
  return copy_of(note);
}

std::int64_t BlockingMap::add(std::string_view key, std::int64_t amount) {
  std::int64_t sum = 0;
  {
    const std::lock_guard lock(mutex_);
    sum = notes_.add(key, amount);
  }
  changed_.notify_all();
  return sum;
}

void BlockingMap::leave(std::string_view prefix, std::int64_t members) {
  const std::lock_guard lock(mutex_);
  if (!notes_.any(prefix)) return;
  const auto left = left_.try_emplace(std::string(prefix), 0).first;
  if (++left->second < members) return;
  left_.erase(left);
  notes_.forget(prefix);
  was_left_ = true;
}

bool BlockingMap::served() const {
  const std::lock_guard lock(mutex_);
  return was_left_ && !notes_.any("");
}

}  // namespace trellis::ccl
