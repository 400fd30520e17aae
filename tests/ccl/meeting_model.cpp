#include "tests/ccl/meeting_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <type_traits>

namespace trellis::ccl {
namespace {

using Call = MembershipNotice::Call;
using Stage = MembershipNotice::Stage;

constexpr int most_turns = 100;  // in which ranks must come together if no more faults happen

template <class T>
std::size_t number(std::vector<T>& table, const T& value) {
  const auto found = std::ranges::find(table, value);
  if (found != table.end()) return static_cast<std::size_t>(found - table.begin());
  table.push_back(value);
  return table.size() - 1;
}

bool has(std::uint8_t bits, Rank r) { return (bits >> r & 1) != 0; }

}  // namespace

Model::Model(Scenario s, Rules rules)
    : scenario_(std::move(s)),
      rules_(rules),
      ranks_(static_cast<Rank>(scenario_.scripts.size())),
      seen_(scenario_.scripts.size()) {}

SplitView Model::known(const World& w, Rank r) {
  const Process& p = w.ranks[r];
  mine_ = notices_[p.board];
  for (Rank other = 0; other < ranks_; ++other)
    seen_[static_cast<std::size_t>(other)] = notices_[other == r ? p.board : p.seen[other]];
  return {mine_, r, seen_, groups_[p.group]};
}

void Model::post(Process& p, const MembershipNotice& n) { p.board = static_cast<std::uint16_t>(number(notices_, n)); }

void Model::begin(Process& p, std::uint32_t attempt) {
  MembershipNotice n = notices_[p.board];
  n.attempt = attempt;
  n.stage = Stage::here;
  n.offer.clear();
  post(p, n);
  p.phase = Phase::meets;
}

void Model::call(Process& p, Rank r) {
  const ModelCall& c = call_of(p, r);
  MembershipNotice n = notices_[p.board];
  n.call = c.call;
  n.wish = c.wish;
  n.members = c.members;
  if (c.call == Call::split) {
    n.members.resize(static_cast<std::size_t>(ranks_));
    std::iota(n.members.begin(), n.members.end(), 0);
  }
  p.group = static_cast<std::uint8_t>(c.call == Call::split ? 0 : number(groups_, c.members));
  post(p, n);
  begin(p, n.attempt + 1);
}

bool Model::act(World& w, Rank r) {
  Process& p = w.ranks[r];
  if (p.phase == Phase::between) return call(p, r), true;
  if (p.phase == Phase::meets) return meet(w, r);
  if (p.phase == Phase::joins) return join(w, r);
  if (p.phase != Phase::doubts) return false;
  for (const Rank other : groups_[p.group])
    if (other != r && notices_[p.seen[other]].broken >= notices_[p.board].attempt) return end(w, r, false), true;
  return false;
}

bool Model::meet(World& w, Rank r) {
  Process& p = w.ranks[r];
  const SplitAction next = rules_.next(known(w, r));
  switch (next.what) {
    case SplitAction::What::wait:
      return false;
    case SplitAction::What::anew:
      begin(p, next.attempt);
      break;
    case SplitAction::What::read: {
      std::vector<ColorKey> wishes;
      for (const MembershipNotice& n : seen_) wishes.push_back(n.wish);
      p.kept = static_cast<std::uint8_t>(number(wishes_, wishes));
      mine_.stage = Stage::read;
      post(p, mine_);
      break;
    }
    case SplitAction::What::part:
      if (mine_.wish.color < 0)
        end(w, r, true);
      else
        p.group = static_cast<std::uint8_t>(number(groups_, group_of(r, wishes_[p.kept])));
      break;
    case SplitAction::What::fail:
      end(w, r, false);
      break;
    case SplitAction::What::offer:
      open(w, r, true);
      break;
    case SplitAction::What::join:
      open(w, r, false);
      break;
  }
  return true;
}

void Model::open(World& w, Rank r, bool leads) {
  Process& p = w.ranks[r];
  p.phase = Phase::joins;
  p.ballot = leads ? w.ballot_count++
                   : static_cast<std::uint8_t>(seen_[static_cast<std::size_t>(groups_[p.group].front())].offer.front());
  if (p.ballot == most_ballots) throw std::logic_error("offers without end");
  Ballot& b = w.ballots[p.ballot];
  if (leads) {
    b = {.call = p.call, .group = p.group};
    mine_.stage = Stage::offers;
    mine_.offer = {static_cast<std::byte>(p.ballot)};
    post(p, mine_);
  }
  if (b.group != p.group || b.call != p.call)
    throw std::logic_error(fmt::format("rank {} joins what was not made for it", r));
  b.joined |= static_cast<std::uint8_t>(1 << r);
}

std::vector<Rank> Model::missing(const Ballot& b) const {
  std::vector<Rank> ranks;
  for (const Rank r : groups_[b.group])
    if (!has(b.joined, r)) ranks.push_back(r);
  return ranks;
}

void Model::after_drop(Process& p) {
  if (notices_[p.board].call == Call::split)
    p.phase = Phase::doubts;
  else
    begin(p, notices_[p.board].attempt + 1);
}

bool Model::join(World& w, Rank r) {
  Process& p = w.ranks[r];
  Ballot& b = w.ballots[p.ballot];
  const std::vector<Rank> others = missing(b);
  if (others.empty() && b.outcome == 0) b.outcome = static_cast<std::uint8_t>(JoinOutcome::made);
  if (b.outcome == 0 && rules_.gone(known(w, r), others) >= 0)
    b.outcome = static_cast<std::uint8_t>(JoinOutcome::dropped);
  if (b.outcome == 0) return false;
  if (static_cast<JoinOutcome>(b.outcome) == JoinOutcome::made)
    end(w, r, true);
  else
    after_drop(p);
  return true;
}

void Model::end(World& w, Rank r, bool well) {
  Process& p = w.ranks[r];
  ++(well ? well_ : badly_);
  if (well && notices_[p.board].wish.color >= 0 && groups_[p.group] != expected(p, r))
    throw std::logic_error(
        fmt::format("rank {} is in a communicator of ranks {}", r, fmt::join(groups_[p.group], ", ")));
  MembershipNotice n = notices_[p.board];
  n.stage = Stage::over;
  n.offer.clear();
  const bool split = n.call == Call::split;
  if (split && !well && n.broken == 0) n.broken = n.attempt;
  post(p, n);
  const auto& script = scenario_.scripts[static_cast<std::size_t>(r)];
  p.phase = Phase::between;
  p.group = p.kept = p.ballot = 0;
  if (!well && !split && p.tries + 1 < call_of(p, r).tries) {
    ++p.tries;
    return;
  }
  p.tries = 0;
  ++p.call;
  while (split && !well && p.call < script.size() && script[p.call].call == Call::split) ++p.call;
  if (!well && (!split || p.call == script.size())) w.given_up = 1;
  if (p.call == script.size() || (!well && !split)) p.phase = Phase::done;
}

void Model::expire(World& w, Rank r) {
  Process& p = w.ranks[r];
  if (p.phase != Phase::joins) return end(w, r, false);
  Ballot& b = w.ballots[p.ballot];
  if (b.outcome == 0) b.outcome = static_cast<std::uint8_t>(JoinOutcome::dropped);
  end(w, r, static_cast<JoinOutcome>(b.outcome) == JoinOutcome::made);
}

// The members that rank r's communicator must have by the scripts.
std::vector<Rank> Model::expected(const Process& p, Rank r) const {
  const ModelCall& mine = call_of(p, r);
  if (mine.call == Call::shrink) return mine.members;
  std::vector<ColorKey> wishes;
  for (const auto& script : scenario_.scripts)
    wishes.push_back(p.call < script.size() ? script[p.call].wish : ColorKey{});
  return group_of(r, wishes);
}

// Checks each communicator that was made: all its ranks have joined it, and each of them is still joining, has returned
// from the call, or is dead.
void Model::check(const World& w) const {
  for (std::uint8_t i = 0; i < w.ballot_count; ++i) {
    const Ballot& b = w.ballots[i];
    if (static_cast<JoinOutcome>(b.outcome) != JoinOutcome::made) continue;
    for (const Rank r : groups_[b.group]) {
      const Process& p = w.ranks[r];
      const bool there = p.phase == Phase::joins && p.ballot == i;
      if (!has(b.joined, r) || (!there && p.phase != Phase::dead && p.call <= b.call))
        throw std::logic_error(fmt::format("rank {} is not in what was made of it", r));
    }
  }
}

void Model::check_comes_together(World w) {
  if (!scenario_.meet || w.given_up != 0 || w.deaths != 0) return;
  const std::size_t badly = badly_;
  for (int turn = 0; turn < most_turns; ++turn)
    for (Rank r = 0; r < ranks_; ++r) {
      for (Rank other = 0; other < ranks_; ++other) w.ranks[r].seen[other] = w.ranks[other].board;
      act(w, r);
    }
  for (Rank r = 0; r < ranks_; ++r)
    if (w.ranks[r].phase != Phase::done) throw std::logic_error(fmt::format("rank {} never comes to the others", r));
  const bool splits =
      std::ranges::any_of(scenario_.scripts, [](const auto& s) { return s.front().call == Call::split; });
  if (badly_ != badly && !splits) throw std::logic_error("a shrink failed that had time enough");
  badly_ = badly;
}

// Normalises state that can no longer matter.
void Model::forget(World& w) const {
  for (Ballot& b : w.ballots)
    if (static_cast<JoinOutcome>(b.outcome) == JoinOutcome::dropped) b.joined = 0;
  for (Process& p : w.ranks)
    if (p.phase == Phase::done || p.phase == Phase::dead) {
      std::ranges::fill(p.seen, std::uint16_t{0});
      p.kept = p.group = p.ballot = p.tries = 0;
    }
}

void Model::add(World w, std::size_t from, std::string how) {
  forget(w);
  static_assert(std::has_unique_object_representations_v<World>);
  std::string key(reinterpret_cast<const char*>(&w), sizeof w);
  if (!visited_.emplace(std::move(key), nodes_.size()).second) return;
  nodes_.push_back({w, from, std::move(how)});
}

void Model::follow(std::size_t node) {
  const World from = nodes_[node].world;
  for (Rank r = 0; r < ranks_; ++r) {
    const Phase phase = from.ranks[r].phase;
    if (phase == Phase::done || phase == Phase::dead) continue;
    World w = from;
    if (act(w, r)) add(w, node, fmt::format("{} acts", r));
    for (Rank other = 0; other < ranks_; ++other) {
      if (other == r || from.ranks[r].seen[other] == from.ranks[other].board) continue;
      w = from;
      w.ranks[r].seen[other] = from.ranks[other].board;
      // Lets the rank act at once on what it has read. That leaves out no behaviour, as others read this rank's own
      // board as late as they like.
      if (phase == Phase::meets || phase == Phase::doubts) act(w, r);
      add(w, node, fmt::format("{} looks at {}", r, other));
    }
    if (phase == Phase::meets || phase == Phase::joins || phase == Phase::doubts) {
      w = from;
      expire(w, r);
      add(w, node, fmt::format("{}'s time is over", r));
    }
    if (from.deaths < scenario_.deaths) {
      w = from;
      w.ranks[r].phase = Phase::dead;
      ++w.deaths;
      add(w, node, fmt::format("{} dies", r));
    }
  }
}

std::string Model::way_to(std::size_t node) const {
  std::vector<std::string> steps;
  for (; node != 0; node = nodes_[node].from) steps.push_back(nodes_[node].how);
  std::ranges::reverse(steps);
  return fmt::format("{}", fmt::join(steps, "; "));
}

void Model::explore() {
  add(World{}, 0, "");
  for (std::size_t node = 0; node < nodes_.size(); ++node) try {
      check(nodes_[node].world);
      check_comes_together(nodes_[node].world);
      follow(node);
    } catch (const std::logic_error& e) {
      throw std::logic_error(fmt::format("{}, after: {}", e.what(), way_to(node)));
    }
}

}  // namespace trellis::ccl
