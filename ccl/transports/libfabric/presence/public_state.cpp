#include "ccl/transports/libfabric/presence/public_state.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "ccl/transports/membership_notice.h"
#include "kernels/reduce/reduce.h"
#include "kernels/types/dtype.h"
#include "schedule/collective.h"

namespace trellis::ccl::libfabric {
namespace {

// Checks bytes that may only have some values before they are read as such: a bool that is neither 0 nor 1 must not be
// read.
bool has_values_of_a_rank(std::span<const std::byte> head) {
  struct Small {
    std::size_t at;
    std::size_t values;
  };
  constexpr std::size_t activity = offsetof(PublicStateHeader, activity), flags = 2;
  const std::array small = {Small{offsetof(PublicStateHeader, joined), flags},
                            Small{offsetof(PublicStateHeader, gives_up), flags},
                            Small{offsetof(PublicStateHeader, left), flags},
                            Small{activity + offsetof(RankActivity, running), flags},
                            Small{activity + offsetof(RankActivity, divides), std::size_t{MembershipNotice::calls}},
                            Small{activity + offsetof(RankActivity, collective), schedule::collectives().size()},
                            Small{activity + offsetof(RankActivity, type), kernels::dtype_count},
                            Small{activity + offsetof(RankActivity, wire), kernels::dtype_count},
                            Small{activity + offsetof(RankActivity, reduction), kernels::reduction_count}};
  return std::ranges::all_of(small, [&](const Small& s) { return static_cast<std::size_t>(head[s.at]) < s.values; });
}

}  // namespace

std::size_t public_bytes(const PublicState& s) {
  return sizeof(PublicStateHeader) + s.address.size() + s.note.size() + s.board.size() + s.relayed.size();
}

void write_public(const PublicState& s, std::span<std::byte> to) {
  PublicStateHeader head = s.head;
  head.address_bytes = static_cast<std::uint16_t>(s.address.size());
  head.note_bytes = static_cast<std::uint16_t>(s.note.size());
  head.board_bytes = static_cast<std::uint16_t>(s.board.size());
  head.relayed_bytes = static_cast<std::uint16_t>(s.relayed.size());
  std::memcpy(to.data(), &head, sizeof head);
  auto at = to.begin() + static_cast<std::ptrdiff_t>(sizeof head);
  for (const auto* part : {&s.address, &s.note, &s.board, &s.relayed}) at = std::ranges::copy(*part, at).out;
}

bool read_public(std::span<const std::byte> from, PublicState& s) {
  if (from.size() < sizeof(PublicStateHeader) || !has_values_of_a_rank(from)) return false;
  std::memcpy(&s.head, from.data(), sizeof(PublicStateHeader));
  const std::size_t address = s.head.address_bytes, note = s.head.note_bytes, board = s.head.board_bytes;
  const std::size_t relayed = s.head.relayed_bytes;
  if (s.head.outcome > JoinOutcome::dropped || !RailSet(s.head.rails_left).is_plausible()) return false;
  if (address + note + board + relayed > from.size() - sizeof(PublicStateHeader)) return false;
  auto rest = from.subspan(sizeof(PublicStateHeader));
  const auto part = [&rest](std::vector<std::byte>& to, std::size_t bytes) {
    to.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(bytes));
    rest = rest.subspan(bytes);
  };
  part(s.address, address);
  part(s.note, note);
  part(s.board, board);
  part(s.relayed, relayed);
  return true;
}

bool names_ranks_of(const PublicStateHeader& h, Rank ranks) {
  if (h.activity.elsewhere < -1) return false;
  return std::ranges::all_of(std::array{h.from, h.to, h.lost, h.aborted, h.suspect, h.suspected_by, h.missing, h.absent,
                                        h.activity.waits_for, h.activity.root},
                             [ranks](Rank r) { return r >= -1 && r < ranks; });
}

void take_relayed(PublicState& into, const PublicState& from) {
  into.head.version = from.head.version;
  into.head.activity = from.head.activity;
  into.head.posts = from.head.posts;
  into.head.edition = from.head.edition;
  into.head.survey = from.head.survey;
  into.head.left = from.head.left;
  into.board = from.board;
}

}  // namespace trellis::ccl::libfabric
