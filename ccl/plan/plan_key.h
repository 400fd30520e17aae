// Cache key of plans and of everything that they are made from: an operation without its buffers. No plan can serve
// another operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "ccl/call.h"
#include "schedule/stage_unreadable_buffers.h"

namespace trellis::ccl {

// What a plan depends on besides the call's members: whether the call is in place, and which buffers peers cannot read.
struct BufferTraits {
  bool in_place = false;
  schedule::UnreadableBuffers hidden = {};
};

inline auto lists_of(const Call& c) { return std::tie(c.operation.pairs, c.counts, c.arriving_counts); }

class PlanKey {
 public:
  PlanKey(const Call& call, const BufferTraits& manner) : call_(call), manner_(manner), numbers_(call, manner) {
    call_.input = nullptr;
    call_.output = nullptr;
    call_.op.factor = 1;
  }

  const Call& call() const { return call_; }  // without its buffers and its factor
  const BufferTraits& manner() const { return manner_; }
  bool is(const Call& call, const BufferTraits& manner) const {
    return numbers_ == Numbers(call, manner) && (!numbers_.has_lists() || lists_of(call_) == lists_of(call));
  }
  bool operator==(const PlanKey& other) const { return is(other.call_, other.manner_); }

  struct Hash {
    std::size_t operator()(const PlanKey& a) const {
      const Numbers& n = a.numbers_;
      constexpr std::size_t spread = 0x9E37'79B9'7F4A'7C15;
      return (n.count * spread ^ n.ends) * spread ^ n.kinds;
    }
  };

 private:
  // All members of a call and its BufferTraits except the lists, the buffers and the operator's factor, packed into
  // three words, since every small message compares them twice. If one of these structs gets a new member, this does
  // not compile until it is named here.
  struct Numbers {
    Numbers(const Call& call, const BufferTraits& manner) {
      const auto& [operation, input, output, elements, type, op, counts, arriving] = call;
      const auto& [collective, root, peer, pairs, said_in_place] = operation;
      const auto& [kind, factor] = op;
      const auto& [in_place, hidden] = manner;
      const auto& [hides_input, hides_output] = hidden;
      const bool lists = !(pairs.empty() && counts.empty() && arriving.empty());
      count = elements;
      ends = std::uint64_t{static_cast<std::uint32_t>(peer)} << 32 | static_cast<std::uint32_t>(root);
      kinds = static_cast<std::uint64_t>(collective) | static_cast<std::uint64_t>(type) << 8 |
              static_cast<std::uint64_t>(kind) << 16 | std::uint64_t{in_place} << 24 |
              std::uint64_t{hides_input} << 25 | std::uint64_t{hides_output} << 26 | std::uint64_t{lists} << lists_bit;
    }
    bool has_lists() const { return (kinds >> lists_bit & 1) != 0; }
    bool operator==(const Numbers&) const = default;

    static constexpr int lists_bit = 27;
    std::uint64_t count, ends, kinds;
  };

  Call call_;
  BufferTraits manner_;
  Numbers numbers_;
};

}  // namespace trellis::ccl
