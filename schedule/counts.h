// Numbers that count up by key, in one piece of memory: a program has thousands of them, and each is asked for often.
#pragma once
#include <cstdint>
#include <vector>

namespace trellis::schedule {

class Counts {
 public:
  // The key's number, from 0 on, which is then one more.
  std::int32_t next(std::uint64_t key) {
    if (2 * used_ >= places_.size()) grow();
    Place& place = find(key);
    if (place.count == 0) ++used_, place.key = key;
    return place.count++;
  }

 private:
  struct Place {
    std::uint64_t key = 0;
    std::int32_t count = 0;  // 0: free
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

  std::vector<Place> places_;  // a power of two of them, at most half of them in use
  int shift_ = 64;
  std::size_t used_ = 0;
};

}  // namespace trellis::schedule
