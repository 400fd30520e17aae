// A rank's published state in a split or shrink. Each rank has a board that it alone writes and all ranks read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl {

struct ColorKey {
  std::int32_t color = -1;  // negative: no color
  std::int32_t key = 0;
  bool operator==(const ColorKey&) const = default;
};

struct MembershipNotice {
  enum class Call : std::uint8_t { none, split, shrink };
  static constexpr std::uint8_t calls = 3;
  enum class Stage : std::uint8_t {
    over,   // it has returned
    here,   // waits for the others
    read,   // split: has seen all others at `here`, and knows each one's wish
    offers  // leads a new communicator, and publishes where it is
  };
  Call call = Call::none;
  Stage stage = Stage::over;
  std::uint32_t attempt = 0;  // never decreases; goes up with each call and each retry within one
  std::uint32_t broken = 0;   // the attempt of a split that failed and ended the communicator; 0: none
  Rank blames = -1;           // of a call that is over: the rank that its failure named; -1: none
  ColorKey wish = {};
  std::vector<Rank> members = {};     // the participants, in order
  std::vector<std::byte> offer = {};  // where the new communicator is
  // Why this rank has ended the communicator, unless it is because one of the communicator's ranks was lost.
  enum class Ended : std::uint8_t {
    no,
    failed,
    mismatch,
    lost_outside,  // a rank was lost that is not in this communicator
    finalized      // for itself alone: the others may go on without it
  };
  Ended ended = Ended::no;
  std::string reason = {};
  bool operator==(const MembershipNotice&) const = default;
};

inline constexpr std::size_t most_offer_bytes = 192, most_reason_bytes = 240;

const char* word(MembershipNotice::Call);  // "split"
std::size_t most_notice_bytes(Rank ranks);
std::vector<std::byte> bytes_of(const MembershipNotice&, Rank ranks);
// Reads a notice; from no bytes, an empty one. Throws invalid_argument for bytes that no rank writes.
MembershipNotice notice_in(std::span<const std::byte>, Rank ranks);

}  // namespace trellis::ccl
