#include "sim/cluster/tune/synthesis.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <stdexcept>

#include "schedule/builder/program_recorder.h"
#include "sim/cluster/tune/synthesis_graph.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

using schedule::Collective;
using schedule::Program;

constexpr std::int64_t most_transfers = 4'000'000;
constexpr const char* synthesised_name = "synthesised";

// A chunk's transfer over one edge.
struct Sent {
  std::int32_t chunk = 0;
  std::uint32_t edge = 0;
  double start = 0, arrival = 0;  // seconds
};

class Bits {
 public:
  explicit Bits(std::size_t count) : words_((count + 63) / 64) {}
  void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << i % 64; }
  bool has(std::size_t i) const { return words_[i / 64] >> i % 64 & 1; }
  // Calls visit(i) for each bit i that is set here and not in the other.
  template <class Visit>
  void each_missing(const Bits& there, const Visit& visit) const {
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (std::uint64_t left = words_[w] & ~there.words_[w]; left != 0; left &= left - 1)
        visit(w * 64 + static_cast<std::size_t>(std::countr_zero(left)));
  }

 private:
  std::vector<std::uint64_t> words_;
};

// Spreads chunks from their first holders to all ranks. Decides at every instant when a link is idle or a chunk has
// arrived.
class Spread {
 public:
  Spread(const LinkGraph& graph, const std::vector<Rank>& owners, double chunk_bytes, std::uint64_t seed)
      : graph_(graph), chunk_(chunk_bytes), free_(graph.resources), holders_(owners.size(), 1), random_(seed) {
    held_.assign(static_cast<std::size_t>(graph.ranks), Bits(owners.size()));
    missing_.assign(held_.size(), static_cast<std::int64_t>(owners.size()));
    for (std::size_t c = 0; c < owners.size(); ++c) {
      held_[static_cast<std::size_t>(owners[c])].set(c);
      --missing_[static_cast<std::size_t>(owners[c])];
    }
    promised_ = held_;
    for (std::uint32_t i = 0; i < graph.edges.size(); ++i) by_time_.push_back(i);
    std::ranges::stable_sort(by_time_, {}, [&](std::uint32_t e) { return graph.edges[e].time(chunk_); });
    into_.resize(held_.size());
    for (const std::uint32_t i : by_time_) into_[static_cast<std::size_t>(graph.edges[i].to)].push_back(i);
  }

  std::vector<Sent> run() {
    instants_.push(0);
    while (!instants_.empty()) {
      const double now = instants_.top();
      while (!instants_.empty() && instants_.top() <= now) instants_.pop();
      while (!arriving_.empty() && sent_[arriving_.top().second].arrival <= now) {
        const Sent& s = sent_[arriving_.top().second];
        held_[static_cast<std::size_t>(graph_.edges[s.edge].to)].set(static_cast<std::size_t>(s.chunk));
        arriving_.pop();
      }
      for (const std::uint32_t e : by_time_) match(e, now);
    }
    for (const std::int64_t left : missing_)
      if (left > 0) throw std::invalid_argument("no way leads to some rank");
    return std::move(sent_);
  }

 private:
  void match(std::uint32_t number, double now) {
    const Edge& e = graph_.edges[number];
    const auto to = static_cast<std::size_t>(e.to);
    if (missing_[to] == 0) return;
    for (const ResourceOccupancy& h : e.holds)
      if (free_[h.resource] > now) return;
    const auto chunk = rarest(e);
    if (!chunk) return;
    const double arrival = now + e.time(chunk_);
    for (const ResourceOccupancy& h : e.holds) {
      free_[h.resource] = now + h.seconds * chunk_;
      instants_.push(free_[h.resource]);
    }
    promised_[to].set(*chunk);
    ++holders_[*chunk], --missing_[to];
    sent_.push_back({static_cast<std::int32_t>(*chunk), number, now, arrival});
    arriving_.emplace(-arrival, sent_.size() - 1);
    instants_.push(arrival);
  }

  // The chunk to send: of those that the edge's sender has and its receiver still needs, one that the fewest ranks
  // hold.
  std::optional<std::size_t> rarest(const Edge& e) {
    const auto from = static_cast<std::size_t>(e.from), to = static_cast<std::size_t>(e.to);
    const bool slow = e.byte > 1.5 * graph_.edges[into_[to].front()].byte;
    std::optional<std::size_t> found;
    std::uint32_t alike = 0;
    held_[from].each_missing(promised_[to], [&](std::size_t c) {
      if (found && holders_[c] > holders_[*found]) return;
      if (slow && comes_sooner(c, e)) return;
      if (!found || holders_[c] < holders_[*found]) alike = 0;
      if (random_() % ++alike == 0) found = c;
    });
    return found;
  }

  // Whether a faster edge from another rank that has the chunk, or will have it, could bring everything missing before
  // this edge brings one chunk.
  bool comes_sooner(std::size_t chunk, const Edge& e) const {
    const auto to = static_cast<std::size_t>(e.to);
    for (const std::uint32_t i : into_[to]) {
      const Edge& other = graph_.edges[i];
      if (other.byte * static_cast<double>(missing_[to]) >= e.byte) return false;
      if (promised_[static_cast<std::size_t>(other.from)].has(chunk)) return true;
    }
    return false;
  }

  const LinkGraph& graph_;
  const double chunk_;
  std::vector<Bits> held_, promised_;             // by rank: chunks that are there; the same with those in flight
  std::vector<std::int64_t> missing_;             // of each rank: how many chunks are neither there nor in flight
  std::vector<double> free_;                      // when each resource becomes free
  std::vector<std::uint32_t> holders_;            // of each chunk
  std::vector<std::uint32_t> by_time_;            // edges, the fastest first
  std::vector<std::vector<std::uint32_t>> into_;  // edges into each rank, the fastest first
  std::mt19937_64 random_;
  std::vector<Sent> sent_;
  std::priority_queue<double, std::vector<double>, std::greater<>> instants_;
  std::priority_queue<std::pair<double, std::size_t>> arriving_;
};

// One half of a collective: chunks are spread, or they are summed. Sums are planned as a spread that is then reversed
// in time.
struct Half {
  LinkGraph graph;
  std::vector<Sent> sent;
};

Half half(const Machine& machine, const RankGroup& group, const Pricer::Settings& settings,
          const std::vector<Rank>& owners, double chunk_bytes, const SynthesisOptions& how, bool backwards) {
  Half h{link_graph(machine, group, settings.era, backwards), {}};
  h.sent = Spread(h.graph, owners, chunk_bytes, how.seed).run();
  if (backwards) {
    for (Sent& s : h.sent) s = {s.chunk, s.edge, -s.arrival, -s.start};
    std::ranges::reverse(h.sent);  // of transfers that take no time, those planned later now come first
    std::ranges::stable_sort(h.sent, {}, &Sent::start);
  }
  return h;
}

// The transfers over each link, in order. write() makes each of them wait for the one that is `depth` places before it.
// A transfer is found by its peer and the tag that the recorder will give it.
class Order {
 public:
  explicit Order(Rank ranks) : out_(static_cast<std::size_t>(ranks)), in_(static_cast<std::size_t>(ranks)) {}

  void note(Rank from, Rank to, const Edge& e) {
    const std::int32_t tag = tags_[{from, to}]++;
    out_[static_cast<std::size_t>(from)][e.first_link].push_back({to, tag});
    // On a route of a single link, the order of the sends is enough.
    if (e.first_link != e.last_link) in_[static_cast<std::size_t>(to)][e.last_link].push_back({from, tag});
  }

  void write(std::vector<Program>& programs, std::size_t depth) const {
    for (std::size_t r = 0; r < programs.size(); ++r) {
      std::map<std::pair<Rank, std::int32_t>, std::int32_t> sends, receives;
      const std::vector<schedule::Step>& steps = programs[r].steps;
      for (std::size_t i = 0; i < steps.size(); ++i)
        if (steps[i].end.peer >= 0)
          (schedule::sends(steps[i].op) ? sends : receives)[{steps[i].end.peer, steps[i].end.tag}] =
              static_cast<std::int32_t>(i);
      add(programs[r], out_[r], sends, depth);
      add(programs[r], in_[r], receives, depth);
    }
  }

 private:
  using Lines = std::map<ResourceId, std::vector<std::pair<Rank, std::int32_t>>>;  // of each link: peers and tags

  static void add(Program& program, const Lines& lines,
                  const std::map<std::pair<Rank, std::int32_t>, std::int32_t>& numbers, std::size_t depth) {
    for (const auto& [link, ends] : lines)
      for (std::size_t i = depth; i < ends.size(); ++i) {
        const std::int32_t before = numbers.at(ends[i - depth]), step = numbers.at(ends[i]);
        if (before >= step) continue;
        schedule::Step& s = program.steps[static_cast<std::size_t>(step)];
        const auto known = program.after(s);
        std::vector<std::int32_t> after(known.begin(), known.end());
        if (std::ranges::find(after, before) != after.end()) continue;
        after.insert(std::ranges::upper_bound(after, before), before);
        program.set_after(s, after);
      }
  }

  std::vector<Lines> out_, in_;
  std::map<std::pair<Rank, Rank>, std::int32_t> tags_;
};

std::vector<Rank> owners_of(Collective c, Rank ranks, Rank root, std::int32_t pieces) {
  const Rank shares = schedule::rooted(c) ? 1 : ranks;
  std::vector<Rank> owners;
  for (Rank r = 0; r < shares; ++r)
    owners.insert(owners.end(), static_cast<std::size_t>(pieces), shares == 1 ? root : r);
  return owners;
}

}  // namespace

void expect_synthesises(Collective c) {
  using enum Collective;
  const bool serves = c == all_gather || c == reduce_scatter || c == all_reduce || c == broadcast || c == reduce;
  if (!serves)
    text::refuse("{} is not synthesised: expected all_gather, reduce_scatter, all_reduce, broadcast or reduce",
                 name(c));
}

std::string text_of(const SynthesisOptions& s) {
  return fmt::format("synthesised, {} piece{}{}", s.pieces, s.pieces == 1 ? "" : "s",
                     s.depth > 0 ? fmt::format(", {} at a time", s.depth) : "");
}

schedule::Schedule synthesised(const Machine& machine, const RankGroup& group, const Pricer::Settings& settings,
                               double bytes, const SynthesisOptions& how) {
  const Collective c = settings.operation.collective;
  expect_synthesises(c);
  const Rank ranks = group.ranks();
  const std::vector<Rank> owners = owners_of(c, ranks, settings.operation.root, how.pieces);
  const auto chunks = static_cast<std::int64_t>(owners.size());
  if (ranks < 2 || how.pieces < 1 || chunks * (ranks - 1) > most_transfers)
    text::refuse("{} pieces on {} ranks: expected at least 2 ranks, and at most {} transfers", how.pieces, ranks,
                 most_transfers);
  const bool whole = c == Collective::all_reduce;
  const schedule::Task task{
      .operation = {.collective = c, .root = settings.operation.root, .in_place = settings.operation.in_place},
      .ranks = ranks,
      .pieces = whole ? static_cast<std::int32_t>(chunks) : how.pieces};
  schedule::ProgramRecorder recorder(task);
  Order order(ranks);
  const auto write = [&](bool backwards) {
    const Half h = half(machine, group, settings, owners, bytes / static_cast<double>(chunks), how, backwards);
    double instant = 0;
    for (const Sent& s : h.sent) {
      if (s.start != instant) recorder.next_round();
      instant = s.start;
      const Edge& e = h.graph.edges[s.edge];
      const Rank from = backwards ? e.to : e.from, to = backwards ? e.from : e.to;
      const schedule::ChunkPlace source{from, schedule::Region::data, s.chunk},
          target{to, schedule::Region::data, s.chunk};
      if (backwards)
        recorder.reduce(source, target, 0);
      else
        recorder.copy(source, target, 0);
      order.note(from, to, e);
    }
  };
  if (schedule::reduces(c)) write(true);
  if (whole || !schedule::reduces(c)) write(false);
  schedule::Schedule made{.task = recorder.task(), .algorithm = synthesised_name, .programs = recorder.finish()};
  made.channels = recorder.channels();
  if (how.depth > 0) order.write(made.programs, static_cast<std::size_t>(how.depth));
  return made;
}

namespace {

// The config that names this synthesis in the checkpoint file: "synthesised order=2 segments=4".
AlgorithmConfig config_of(const SynthesisOptions& how) {
  return {.algorithm = synthesised_name, .segments = how.pieces, .order = {how.depth}};
}

// Synthesises a schedule and prices it, unless its time is known. `forever`: it exceeds the limit or was stopped.
Time time_of(CollectiveQuestion q, PricingSession& priced, const SynthesisOptions& how, const SweepControl& control) {
  const AlgorithmConfig config = config_of(how);
  const auto is_this = [&](const ConfigCost& c) { return c.config == config && c.bytes == q.bytes; };
  if (const auto known = std::ranges::find_if(control.known, is_this); known != control.known.end())
    return known->time <= q.limit ? known->time : forever;
  for (const ConfigCost& c : control.slower)
    if (is_this(c) && c.time >= q.limit) return forever;
  const schedule::Schedule made = synthesised(priced.machine(), q.group, q.settings, q.bytes, how);
  q.schedule = &made;
  const Time time = answer(q, priced).price.time;
  if (time != forever && control.found) control.found({config, q.bytes, time});
  if (time == forever && control.given_up && !(control.stopped && control.stopped()))
    control.given_up({config, q.bytes, q.limit});
  return time;
}

}  // namespace

std::vector<SynthesisResult> syntheses(const Machine& machine, const RankGroup& group, const Pricer::Settings& settings,
                                       double bytes, const SweepControl& control) {
  constexpr std::int64_t most_tried = 300'000;  // transfers
  std::vector<SynthesisResult> all;
  CancellationMonitor watch(control.stopped);
  PricingSession priced(machine.spec(), &watch);
  CollectiveQuestion question{.settings = settings, .group = group, .bytes = bytes, .interval = false};
  for (const std::int32_t pieces : {1, 2, 4, 8, 16, 32})
    for (const std::int32_t depth : {1, 2, 4, 0}) {
      const std::int64_t shares = schedule::rooted(settings.operation.collective) ? 1 : group.ranks();
      if (pieces > 1 && shares * pieces * group.ranks() > most_tried) continue;
      if (static_cast<double>(shares * pieces) * settings.element > bytes && pieces > 1) continue;
      if (control.stopped && control.stopped()) break;
      const SynthesisOptions how{.pieces = pieces, .depth = depth};
      const Time time = time_of(question, priced, how, control);
      if (time == forever) continue;
      all.push_back({how, time});
      question.limit = std::min(question.limit, 2 * time);
    }
  std::ranges::stable_sort(all, {}, &SynthesisResult::time);
  return all;
}

}  // namespace trellis::sim
