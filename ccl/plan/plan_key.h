// Cache key of plans and of everything that they are made from: an operation without its buffers. No plan can serve
// another operation.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include "ccl/communicator.h"
#include "schedule/stage_unreadable_buffers.h"

namespace trellis::ccl {

// All members of a call except its buffers and the operator's factor. A new member of Call or of its operator does not
// compile until it is named here.
inline auto parts_of(const Call& call) {
  const auto& [collective, input, output, count, type, op, root, peer, pairs, counts, arriving_counts] = call;
  const auto& [kind, factor] = op;
  return std::pair(std::tie(collective, count, type, kind, root, peer), std::tie(pairs, counts, arriving_counts));
}
inline bool has_lists(const Call& c) { return !(c.pairs.empty() && c.counts.empty() && c.arriving_counts.empty()); }

// How a call is made: what a plan depends on besides the call's members.
struct Manner {
  bool in_place = false;
  schedule::UnreadableBuffers hidden = {};
  bool operator==(const Manner&) const = default;
};

class PlanKey {
 public:
  PlanKey(const Call& call, const Manner& manner) : call_(call), manner_(manner), has_lists_(ccl::has_lists(call)) {
    call_.input = nullptr;
    call_.output = nullptr;
    call_.op.factor = 1;
  }

  const Call& call() const { return call_; }  // without its buffers and its factor
  const Manner& manner() const { return manner_; }
  // Every small message is compared twice, so lists are looked into only where there are any.
  bool is(const Call& call, const Manner& manner) const {
    const auto [own_numbers, own_lists] = parts_of(call_);
    const auto [numbers, lists] = parts_of(call);
    return own_numbers == numbers && manner_ == manner && has_lists_ == ccl::has_lists(call) &&
           (!has_lists_ || own_lists == lists);
  }
  bool operator==(const PlanKey& other) const { return is(other.call_, other.manner_); }

  struct Hash {
    std::size_t operator()(const PlanKey& a) const {
      const Call& c = a.call_;
      return c.count * 0x9E37'79B9'7F4A'7C15 ^ static_cast<std::size_t>(c.root) << 20 ^
             static_cast<std::size_t>(c.collective) << 8 ^ static_cast<std::size_t>(c.type) << 2 ^
             static_cast<std::size_t>(a.manner_.hidden.input) << 62 ^
             static_cast<std::size_t>(a.manner_.hidden.output) << 61 ^ static_cast<std::size_t>(c.op.kind) << 32 ^
             static_cast<std::size_t>(a.manner_.in_place);
    }
  };

 private:
  Call call_;
  Manner manner_;
  bool has_lists_;
};

}  // namespace trellis::ccl
