#include "ccl/transports/libfabric/control/member_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>

#include "ccl/rendezvous/member_check.h"
#include "text/refuse.h"

namespace trellis::ccl::libfabric {
namespace {

constexpr Rank told_at_once = 256;  // members in one note of the store
constexpr const char* damaged =
    "libfabric: the store's note about a member is damaged, or of another version of this library";

// A member is written as "host home terms process address", each behind its length. Host, home and terms are left empty
// if they equal those of the member before: a host has many members, and every process reads all of them.
void put(Bytes& to, std::span<const std::byte> what) {
  const auto size = static_cast<std::uint32_t>(what.size());
  const auto head = std::as_bytes(std::span(&size, 1));
  to.insert(to.end(), head.begin(), head.end());
  to.insert(to.end(), what.begin(), what.end());
}

std::span<const std::byte> taken(std::span<const std::byte>& from) {
  std::uint32_t size = 0;
  if (from.size() < sizeof size) throw std::invalid_argument(damaged);
  std::memcpy(&size, from.data(), sizeof size);
  if (size > from.size() - sizeof size) throw std::invalid_argument(damaged);
  const auto found = from.subspan(sizeof size, size);
  from = from.subspan(sizeof size + size);
  return found;
}

std::span<const std::byte> bytes_in(std::string_view s) { return std::as_bytes(std::span(s)); }
std::string text_in(std::span<const std::byte> b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

Bytes note_of(const Member& m, const Member& before = {}) {
  const bool again = m.host == before.host && m.home == before.home && m.terms == before.terms;
  Bytes note;
  put(note, bytes_in(again ? std::string_view() : m.host));
  put(note, bytes_in(again ? std::string_view() : m.home));
  put(note, bytes_in(again ? std::string_view() : m.terms));
  put(note, std::as_bytes(std::span(&m.process, 1)));
  put(note, m.address);
  return note;
}

Member member_in(std::span<const std::byte>& note, const Member& before = {}) {
  Member m;
  m.host = text_in(taken(note));
  m.home = text_in(taken(note));
  m.terms = text_in(taken(note));
  if (m.host.empty() && m.home.empty()) m.host = before.host, m.home = before.home, m.terms = before.terms;
  const auto process = taken(note);
  if (process.size() != sizeof m.process) throw std::invalid_argument(damaged);
  std::memcpy(&m.process, process.data(), sizeof m.process);
  const auto address = taken(note);
  m.address.assign(address.begin(), address.end());
  return m;
}

void expect_alike(Store& store, Rank rank, const std::vector<Member>& members) {
  const Member& first = members.front();
  const auto other = std::ranges::find_if(members, [&](const Member& m) { return m.terms != first.terms; });
  if (other == members.end()) return;
  refused_together(store, rank);
  const auto at = static_cast<Rank>(other - members.begin());
  throw Mismatch(rank == at ? 0 : at,
                 fmt::format("libfabric: rank {} on {} speaks {}, and rank 0 on {} speaks {}: expected the same", at,
                             other->host, other->terms, first.host, first.terms));
}

std::string note_for_all(Rank part) { return fmt::format("fabric/all/{}", part); }

// Makes note number `part` of rank 0: the communicator's CommunicatorNonce, then what up to 256 members have reported.
Bytes gathered(Store& store, Rank part, Rank ranks, const CommunicatorNonce& origin, Deadline deadline) {
  Bytes all;
  put(all, std::as_bytes(std::span(&origin, 1)));
  Member before;
  for (Rank r = part * told_at_once; r < std::min(ranks, (part + 1) * told_at_once); ++r) try {
      const Bytes told = store.get(fmt::format("fabric/{}", r), deadline);
      std::span<const std::byte> rest = told;
      Member one = member_in(rest);
      const Bytes again = note_of(one, before);
      all.insert(all.end(), again.begin(), again.end());
      before = std::move(one);
    } catch (const TimedOut&) {
      throw PeerLost(r, -1, fmt::format("rank {} did not join in time", r));
    }
  return all;
}

// Writes the note by which rank 0 gives up, in place of the members: an empty CommunicatorNonce, the missing rank (-1:
// none) and the reason. Rank 0's process may hold the store, so rank 0 waits until the ranks that have come have read
// the note.
void tell_of_giving_up(Store& store, Rank part, Rank missing, std::string_view why) {
  Bytes note;
  put(note, {});
  put(note, std::as_bytes(std::span(&missing, 1)));
  put(note, bytes_in(why));
  try {
    store.set(note_for_all(part), note);
  } catch (const std::exception&) {  // the error that rank 0 throws next says more
    return;
  }
  refused_together(store, 0);
}

void gather(Store& store, Rank parts, Rank ranks, const CommunicatorNonce& origin, Deadline deadline) {
  for (Rank part = 0; part < parts; ++part) try {
      store.set(note_for_all(part), gathered(store, part, ranks, origin, deadline));
    } catch (const PeerLost& lost) {
      tell_of_giving_up(store, part, lost.rank, lost.what());
      throw;
    } catch (const std::exception& e) {
      tell_of_giving_up(store, part, -1, e.what());
      throw;
    }
}

[[noreturn]] void give_up_as_told(Store& store, Rank rank, std::span<const std::byte> note) {
  const auto who = taken(note);
  Rank missing = -1;
  if (who.size() != sizeof missing) throw std::invalid_argument(damaged);
  std::memcpy(&missing, who.data(), sizeof missing);
  const std::string why = text_in(taken(note));
  refused_together(store, rank);
  if (missing >= 0) throw PeerLost(missing, -1, fmt::format("{}, as rank 0 found", why));
  throw std::runtime_error(fmt::format("rank 0 has given up joining: {}", why));
}

}  // namespace

std::vector<Member> exchange_members(Store& store, Rank rank, Rank ranks, const Member& mine, CommunicatorNonce& origin,
                                     Deadline deadline) {
  store.set(fmt::format("fabric/{}", rank), note_of(mine));
  const Rank parts = (ranks + told_at_once - 1) / told_at_once;
  if (rank == 0) gather(store, parts, ranks, origin, deadline);
  std::vector<Member> members;
  for (Rank part = 0; part < parts; ++part) {
    const Bytes all = store.get(note_for_all(part), deadline);
    std::span<const std::byte> rest = all;
    const auto told = taken(rest);
    if (told.empty()) give_up_as_told(store, rank, rest);
    if (told.size() != sizeof origin) throw std::invalid_argument(damaged);
    std::memcpy(&origin, told.data(), sizeof origin);
    for (Member before; !rest.empty(); before = members.back()) members.push_back(member_in(rest, before));
  }
  if (members.size() != static_cast<std::size_t>(ranks))
    text::refuse("libfabric: the store tells of {} members: expected {}", members.size(), ranks);
  expect_alike(store, rank, members);
  return members;
}

}  // namespace trellis::ccl::libfabric
