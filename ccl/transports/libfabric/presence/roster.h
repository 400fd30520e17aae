// Roster: who the ranks of a communicator are. It does not change, so any thread may read it.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl::libfabric {

// A process that takes part, as the store told of it.
struct Member {
  std::vector<std::byte> address;  // of its wires for control, a list
  std::string host;                // name
  std::string home;                // equal for processes that see each other: boot and process namespace
  std::int64_t process = 0;
  std::string terms = {};  // how it carries data: must be equal for all
};

class Roster {
 public:
  // `places`: each rank's number among the members that share a ControlLink.
  Roster(std::uint64_t identity, Rank rank, std::vector<std::size_t> places, std::vector<Member> members)
      : identity_(identity), rank_(rank), places_(std::move(places)), members_(std::move(members)) {
    one_host_ = std::ranges::all_of(members_, [&](const Member& m) { return m.host == members_.front().host; });
  }

  std::uint64_t identity() const { return identity_; }
  Rank rank() const { return rank_; }
  Rank ranks() const { return static_cast<Rank>(places_.size()); }
  std::size_t place(Rank r) const { return places_[static_cast<std::size_t>(r)]; }
  std::optional<Rank> rank_at(std::size_t place) const {
    const auto at = std::ranges::find(places_, place);
    return at == places_.end() ? std::nullopt : std::optional(static_cast<Rank>(at - places_.begin()));
  }
  const Member& member(Rank r) const { return members_[static_cast<std::size_t>(r)]; }
  std::string host(Rank r) const { return one_host_ ? "" : member(r).host; }       // empty: all ranks share one
  bool here(Rank r) const { return member(r).home == member(rank_).home; }         // on this host
  bool visible(Rank r) const { return here(r) && member(r).process != getpid(); }  // as a process of this host

 private:
  const std::uint64_t identity_;
  const Rank rank_;
  const std::vector<std::size_t> places_;
  const std::vector<Member> members_;  // by rank
  bool one_host_ = true;
};

}  // namespace trellis::ccl::libfabric
