#include "sim/cluster/price/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "text/words.h"

namespace trellis::sim {
namespace {

// If one pair of ranks takes at least this part of a group's time, the words name that pair alone.
constexpr double stands_for_all = 0.5;

struct Pair {
  Rank from = -1, to = -1;
  ResourceId resource = no_resource;
  auto operator<=>(const Pair&) const = default;
};

// Legs of one kind over one kind of link, which path_shares() reports together.
struct Kin {
  Time time = 0;
  std::map<Pair, Time> pairs;
};

std::string_view kind_words(CriticalPathLeg::Kind kind) {
  return text::word_of(kind,
                       {"launch", "handshakes and DMA starts", "moving bytes", "latency of links and semaphores"});
}

std::string words(const Machine& machine, CriticalPathLeg::Kind kind, const Kin& kin) {
  const auto longest = std::ranges::max_element(kin.pairs, {}, [](const auto& each) { return each.second; });
  const auto& [pair, time] = *longest;
  const bool sends = pair.to >= 0;
  std::string over;
  if (kind == CriticalPathLeg::Kind::moving && pair.resource != no_resource)
    over = fmt::format(" over {}", machine.port_name(pair.resource));
  const std::string what = fmt::format("{}{}", kind_words(kind), over);
  if (!sends) return what;
  const double share = static_cast<double>(time) / static_cast<double>(kin.time);
  const std::string from = short_name(machine, pair.from), to = short_name(machine, pair.to);
  if (share < stands_for_all)
    return fmt::format("{} (the longest, {} to {}, is {:.0f}% of it)", what, from, to, 100 * share);
  if (kind != CriticalPathLeg::Kind::moving) return fmt::format("{} ({} to {})", what, from, to);
  return fmt::format("{} waits for its send to {}{}", from, to, over);
}

}  // namespace

std::string short_name(const Machine& machine, Rank r) {
  return fmt::format("{} {}", machine.cores() == 1 ? "chip" : "rank", r);
}

std::string rank_name(const Machine& machine, Rank r) {
  if (machine.cores() == 1) return short_name(machine, r);
  return fmt::format("{} (chip {})", short_name(machine, r), r / machine.cores());
}

// Goes back from the end, each time to the move waited for last.
std::vector<std::int64_t> critical_moves(const SimulationRun& run) {
  const auto& traces = run.traces();
  std::int64_t at = -1;
  Time last = -1;
  for (std::int64_t i = 0; i < std::ssize(traces); ++i)
    if (const Time arrived = traces[i].end + run.latency(i); arrived > last) last = arrived, at = i;
  std::vector<std::int64_t> moves;
  for (; at >= 0; at = traces[at].cause) moves.push_back(at);
  std::ranges::reverse(moves);
  return moves;
}

std::vector<CriticalPathLeg> critical_path(const SimulationRun& run, const std::vector<std::int64_t>& moves,
                                           Time launch, Time end) {
  const auto& traces = run.traces();
  std::vector<CriticalPathLeg> legs;
  const Time first = moves.empty() ? end : traces[moves.front()].ready;
  legs.push_back({CriticalPathLeg::Kind::launch, std::min(first, launch)});
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const MoveTrace& t = traces[moves[i]];
    const SimulationRun::Place where = run.place(moves[i]);
    const Time until = i + 1 < moves.size() ? traces[moves[i + 1]].ready : end;
    legs.push_back({CriticalPathLeg::Kind::software, t.begin - t.ready, where.rank, where.peer});
    legs.push_back({CriticalPathLeg::Kind::moving, t.end - t.begin, where.rank, where.peer, run.busiest(moves[i])});
    legs.push_back({CriticalPathLeg::Kind::latency, until - t.end, where.rank, where.peer});
  }
  std::erase_if(legs, [](const CriticalPathLeg& leg) { return leg.time <= 0; });
  return legs;
}

std::vector<CriticalPathShare> path_shares(const Price& price, const Machine& machine) {
  std::map<std::pair<CriticalPathLeg::Kind, std::string>, Kin> kinds;
  for (const CriticalPathLeg& leg : price.path) {
    const bool over = leg.kind == CriticalPathLeg::Kind::moving && leg.resource != no_resource;
    Kin& kin = kinds[{leg.kind, over ? std::string(machine.port_name(leg.resource)) : ""}];
    kin.time += leg.time;
    kin.pairs[{leg.from, leg.to, leg.resource}] += leg.time;
  }
  std::vector<CriticalPathShare> shares;
  for (const auto& [key, kin] : kinds) shares.push_back({kin.time, words(machine, key.first, kin)});
  std::ranges::stable_sort(shares, std::greater<>(), &CriticalPathShare::time);
  return shares;
}

std::string path_in_words(const Price& price, const Machine& machine) {
  Time sum = 0;
  for (const CriticalPathLeg& leg : price.path) sum += leg.time;
  std::string text;
  for (const CriticalPathShare& share : path_shares(price, machine))
    text += fmt::format("{}{:.0f}% {}", text.empty() ? "" : ", ",
                        100.0 * static_cast<double>(share.time) / static_cast<double>(sum), share.words);
  return text;
}

}  // namespace trellis::sim
