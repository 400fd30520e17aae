#include "ccl/rendezvous/bounded_map.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include "text/refuse.h"

namespace trellis::ccl {

void check_key(std::string_view key) {
  if (key.empty() || key.size() > most_key_bytes)
    text::refuse("a store's key has 1 to {} bytes, and this one has {}", most_key_bytes, key.size());
}

void check_value(std::span<const std::byte> value) {
  if (value.size() > most_value_bytes)
    text::refuse("a store's value has at most {} bytes, and this one has {}", most_value_bytes, value.size());
}

std::int64_t sum_of(std::string_view key, const Bytes* counter, std::int64_t amount) {
  std::uint64_t now = 0;
  if (counter != nullptr) {
    if (counter->size() != sizeof now)
      text::refuse("note '{}' has {} bytes and is no counter: nothing can be added to it", key, counter->size());
    for (std::size_t i = sizeof now; i-- > 0;) now = now << 8 | std::to_integer<std::uint64_t>((*counter)[i]);
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(static_cast<std::int64_t>(now), amount, &sum))
    text::refuse("counter '{}' is {}: adding {} would overflow", key, static_cast<std::int64_t>(now), amount);
  return sum;
}

Bytes counter_of(std::int64_t value) {
  Bytes bytes(sizeof value);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
  return bytes;
}

void BoundedMap::set(std::string_view key, std::span<const std::byte> value) {
  check_key(key);
  check_value(value);
  const auto found = notes_.find(key);
  const std::size_t before = found == notes_.end() ? 0 : key.size() + found->second.size();
  const std::size_t after = bytes_ - before + key.size() + value.size();
  if (after > most_notes_bytes)
    throw std::system_error(
        ENOSPC, std::generic_category(),
        fmt::format("the store holds {} bytes, its most, so note '{}' of {}", most_notes_bytes, key, value.size()));
  bytes_ = after;
  if (found == notes_.end())
    notes_.emplace(key, Bytes(value.begin(), value.end()));
  else
    found->second.assign(value.begin(), value.end());
}

const Bytes* BoundedMap::find(std::string_view key) const {
  const auto found = notes_.find(key);
  return found == notes_.end() ? nullptr : &found->second;
}

std::int64_t BoundedMap::add(std::string_view key, std::int64_t amount) {
  check_key(key);
  const std::int64_t sum = sum_of(key, find(key), amount);
  set(key, counter_of(sum));
  return sum;
}

bool BoundedMap::any(std::string_view prefix) const {
  const auto first = notes_.lower_bound(prefix);
  return first != notes_.end() && first->first.starts_with(prefix);
}

void BoundedMap::forget(std::string_view prefix) {
  auto next = notes_.lower_bound(prefix);
  while (next != notes_.end() && next->first.starts_with(prefix)) {
    bytes_ -= next->first.size() + next->second.size();
    next = notes_.erase(next);
  }
}

void throw_no_note(std::string_view key, Deadline asked_at, const std::string& where) {
  throw TimedOut(fmt::format("{:.3f} s went by and nobody has set '{}' in {}",
                             std::chrono::duration<double>(Clock::now() - asked_at).count(), key, where));
}

}  // namespace trellis::ccl
