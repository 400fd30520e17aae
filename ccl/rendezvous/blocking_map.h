// Thread-safe map from keys to bytes: a thread that waits for a key is woken when it is set. Keys are erased when the
// members that they are for have left.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ccl/rendezvous/bounded_map.h"

namespace trellis::ccl {

class BlockingMap {
 public:
  void set(std::string_view key, std::span<const std::byte> value);
  std::optional<Bytes> find(std::string_view key) const;
  std::optional<Bytes> find_before(std::string_view key, Deadline);  // waits until the key is set
  std::int64_t add(std::string_view key, std::int64_t amount);

  // Called by each of `members` that no longer needs the keys with a prefix ("": all); the last call erases them.
  void leave(std::string_view prefix, std::int64_t members);
  bool served() const;  // there were keys, and the last members to leave have erased all of them

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  BoundedMap notes_;
  std::map<std::string, std::int64_t, std::less<>> left_;  // number of members that have left, by prefix
  bool was_left_ = false;                                  // all members of some prefix have left
};

}  // namespace trellis::ccl
