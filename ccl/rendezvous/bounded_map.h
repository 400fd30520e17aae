// In-memory map from keys to bytes, and the limits that every store enforces.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "ccl/store.h"

namespace trellis::ccl {

inline constexpr std::size_t most_key_bytes = 1024;
inline constexpr std::size_t most_value_bytes = std::size_t{1} << 20;
inline constexpr std::size_t most_notes_bytes = std::size_t{256} << 20;  // of all keys and values together

void check_key(std::string_view);              // throws invalid_argument: empty, or too long
void check_value(std::span<const std::byte>);  // throws invalid_argument: too long

// Returns a counter's number plus `amount`. A counter is a value of eight bytes, lowest first; null counts as 0. Throws
// invalid_argument for a value that is not a counter and for a sum that does not fit.
std::int64_t sum_of(std::string_view key, const Bytes* counter, std::int64_t amount);
Bytes counter_of(std::int64_t);

class BoundedMap {
 public:
  void set(std::string_view key, std::span<const std::byte> value);  // system_error (ENOSPC): limit exceeded
  const Bytes* find(std::string_view key) const;                     // null: not there yet
  std::int64_t add(std::string_view key, std::int64_t amount);
  bool any(std::string_view prefix) const;  // whether any key begins with it
  void forget(std::string_view prefix);     // erases all of these

 private:
  std::map<std::string, Bytes, std::less<>> notes_;
  std::size_t bytes_ = 0;
};

// Throws the error of a get at its deadline.
[[noreturn]] void throw_no_note(std::string_view key, Deadline asked_at, const std::string& where);

}  // namespace trellis::ccl
