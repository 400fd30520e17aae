// Counters by key in a flat hash table. A program has thousands of counters, and each is read often.
#pragma once
#include <cstdint>
#include <vector>

namespace trellis::schedule {

class CounterMap {
 public:
  // Returns the key's counter, from 0 on, and increments it.
  std::int32_t next(std::uint64_t key) {
    if (2 * used_ >= places_.size()) grow();
    Place& place = find(key);
    if (place.count == 0) ++used_, place.key = key;
    return place.count++;
  }

 private:
  struct Place {
    std::uint64_t key = 0;
    std::int32_t count = 0;  // 0: free slot
  };

  Place& find(std::uint64_t key) {
    const std::size_t mask = places_.size() - 1;
    std::size_t at = key * 0x9e3779b97f4a7c15 >> shift_;
    while (places_[at].count > 0 && places_[at].key != key) at = (at + 1) & mask;
    return places_[at];
  }

  void grow() {
    std::vector<Place> before(places_.empty() ? 8 : 2 * places_.size());
    before.swap(places_);
    for (shift_ = 64; std::size_t{1} << (64 - shift_) < places_.size();) --shift_;
    for (const Place& place : before)
      if (place.count > 0) find(place.key) = place;
  }

  std::vector<Place> places_;  // the size is a power of two; at most half are in use
  int shift_ = 64;
  std::size_t used_ = 0;
};

}  // namespace trellis::schedule
