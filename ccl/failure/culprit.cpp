#include "ccl/failure/culprit.h"

#include <fmt/format.h>

#include <algorithm>

#include "ccl/transports/describe_rank.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using How = Culprit::How;

constexpr auto patience = 200ms;  // for the answer of a healthy rank that is only in another communicator

// A rank that may be at fault.
struct Suspect {
  Rank place;
  Rank rank;  // in this communicator; -1: it is not in it
  RankActivity here = {};
  CommunicatorFamily::Outsider outside = {};
  bool former = false;  // the rank that led here has given up waiting for it
};

class Search {
 public:
  explicit Search(const RankWait& w) : w_(w), now_(Clock::now()) {}

  // Adds a suspect and, after it, all that it waits for, and so on.
  void follow(Rank place, bool former = false) {
    const Rank rank = w_.family.rank_at(place);
    if (rank == w_.transport.rank() || std::ranges::find(suspects_, place, &Suspect::place) != suspects_.end()) return;
    Suspect s{.place = place, .rank = rank, .former = former};
    if (rank >= 0)
      s.here = w_.transport.activity(rank);
    else
      s.outside = w_.family.outsider(place, patience);
    std::vector<Rank> next = s.outside.waits;
    if (s.here.elsewhere >= 0) next.push_back(s.here.elsewhere);
    if (s.here.running && s.here.waits_for >= 0 && s.here.waits_for < w_.transport.ranks())
      next.push_back(w_.family.place(s.here.waits_for));
    suspects_.push_back(std::move(s));
    for (const Rank p : next) follow(p, former);
  }

  // Adds the ranks that the suspects have given up waiting for. found() blames such a rank only if it is still stopped
  // or silent.
  void follow_former() {
    for (std::size_t i = 0; i < suspects_.size(); ++i)
      if (suspects_[i].rank >= 0)
        for (const Rank place : w_.watch.waited_elsewhere(suspects_[i].rank)) follow(place, true);
  }

  Culprit found() const {
    for (const Suspect& s : suspects_)
      if (s.rank >= 0 ? w_.transport.stopped(s.rank) : s.outside.stopped) return of(How::stopped, s);
    const Suspect* still = nullptr;
    for (const Suspect& s : suspects_) {
      if (s.outside.known && !s.outside.answers) return of(How::still, s);
      if (!s.former && s.here.waits_somewhere() && is_unchanged(s) &&
          (still == nullptr || unchanged(s) > unchanged(*still)))
        still = &s;
    }
    if (still != nullptr) return of(How::still, *still);
    for (const Suspect& s : suspects_)
      if (!s.former && (s.rank >= 0 ? !s.here.waits_somewhere() && is_unchanged(s) : !s.outside.occupied))
        return of(How::idle, s);
    Culprit none;
    for (const Suspect& s : suspects_)
      if (s.rank >= 0 && !s.former) none.waited_for.push_back(s.rank);
    return none;
  }

 private:
  std::chrono::nanoseconds unchanged(const Suspect& s) const { return w_.watch.unchanged(s.rank, now_); }
  bool is_unchanged(const Suspect& s) const { return unchanged(s) >= w_.watch.enough(); }
  static Culprit of(How how, const Suspect& s) { return {.how = how, .rank = s.rank, .place = s.place}; }

  const RankWait& w_;
  const Deadline now_;
  std::vector<Suspect> suspects_;  // the chain first, in its order
};

}  // namespace

Culprit culprit_of(const RankWait& w, Rank first, std::span<const Rank> needed) {
  Search search(w);
  if (first >= 0) search.follow(w.family.place(first));
  for (const Rank r : needed) search.follow(w.family.place(r));
  search.follow_former();
  return search.found();
}

std::string name_of(const RankWait& w, const Culprit& c) {
  if (c.rank >= 0) return who(w.transport, c.rank);
  return fmt::format("rank {} of the first communicator (not in this one)", c.place);
}

}  // namespace trellis::ccl
