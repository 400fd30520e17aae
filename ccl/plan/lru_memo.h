// LRU cache whose values are computed from the key alone, by a function fixed at construction. So everything that a
// value depends on is in the key or never changes, and no key can get another key's value.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <utility>

namespace trellis::ccl {

// Keys compare by all of their members, with a defaulted ==. When there are more than `most` values, the least recently
// used is dropped.
template <class Key, class Value>
class LruMemo {
 public:
  LruMemo(std::size_t most, std::function<Value(const Key&)> make) : most_(most), make_(std::move(make)) {}
  LruMemo(const LruMemo&) = delete;
  LruMemo& operator=(const LruMemo&) = delete;

  // The result is valid until another key is requested.
  const Value& operator()(const Key& key) {
    for (auto at = values_.begin(); at != values_.end(); ++at) {
      if (!(at->first == key)) continue;
      values_.splice(values_.begin(), values_, at);
      return at->second;
    }
    values_.emplace_front(key, make_(key));
    if (values_.size() > most_) values_.pop_back();
    return values_.front().second;
  }

 private:
  const std::size_t most_;
  const std::function<Value(const Key&)> make_;
  std::list<std::pair<Key, Value>> values_;  // most recently used first
};

}  // namespace trellis::ccl
