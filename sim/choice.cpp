#include "sim/choice.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "sim/class_bound.h"
#include "sim/glimpse.h"

namespace trellis::sim {
namespace {

Rank product(const std::vector<Rank>& dims) {
  Rank n = 1;
  for (Rank d : dims) n *= d;
  return n;
}

// The machine's dims cut to the first so many ranks, if they are whole rows.
std::vector<Rank> part_of(const std::vector<Rank>& dims, Rank ranks) {
  std::vector<Rank> part;
  for (Rank d : dims) {
    if (ranks % d != 0 && d % ranks != 0) return {};
    part.push_back(std::min(d, ranks));
    ranks = ranks % d == 0 ? ranks / d : 1;
  }
  return ranks == 1 ? part : std::vector<Rank>{};
}

// As one row, as chips in a row, as they are, and as hosts in a row.
std::vector<std::vector<Rank>> shapes(const Machine& machine, Rank ranks) {
  std::vector<std::vector<Rank>> all{{ranks}};
  const auto add = [&](std::vector<Rank> dims) {
    if (!dims.empty() && product(dims) == ranks && std::ranges::find(all, dims) == all.end())
      all.push_back(std::move(dims));
  };
  const Rank cores = machine.cores();
  if (ranks % cores == 0 && cores > 1) add({cores, ranks / cores});
  add(part_of(machine.dims(), ranks));
  Rank inner = cores;
  for (const auto& fabric : machine.fabrics()) {
    if (fabric->attached() && inner > 1 && ranks % inner == 0 && ranks > inner) add({inner, ranks / inner});
    inner *= fabric->size();
  }
  return all;
}

// One way that is in the running, by what is known of it so far.
struct Entry {
  enum class Known : std::uint8_t { nothing, outline, chip, classes, alone };  // see Pricer, least_by_classes

  std::size_t place = 0;  // among those given
  Time least = 0;
  double moves = 0;  // gone through, to know more
  double own = 0;    // of one rank
  bool out = false;  // it takes longer than the best
  Known known = Known::nothing;

  bool operator<(const Entry& o) const {
    return std::tuple(least, moves, place) < std::tuple(o.least, o.moves, o.place);
  }
};

// What takes little to know more of is looked at first, and of that what is the most promising: so that when it comes
// to what takes much, most of it is already known to be slower than the best.
class Contest {
 public:
  Contest(Pricer& pricer, const std::vector<Way>& ways, double bytes, const ChoiceLimits& limits)
      : pricer_(pricer), ways_(ways), bytes_(bytes), limits_(limits) {}

  Choice run() {
    for (std::size_t i = 0; i < ways_.size(); ++i) entries_.push_back({.place = i});
    for (effort_ = 256; !entries_.empty(); effort_ *= 4)
      for (auto next = most_promising(); next != entries_.end(); next = most_promising()) {
        Entry entry = *next;
        entries_.erase(next);
        know_more(entry);
      }
    for (const auto& [time, place] : best_) choice_.best.push_back({ways_[place], bytes_, time});
    for (const Result& r : least_)
      if (own_best(r.second) == best_.end()) choice_.others.push_back({ways_[r.second], bytes_, r.first});
    std::ranges::stable_sort(choice_.others, {}, &Cost::time);
    return std::move(choice_);
  }

 private:
  using Result = std::pair<Time, std::size_t>;  // and its place
  // A price goes through each move several times, and shares what they meet on.
  static constexpr double looks_a_price = 8;
  static constexpr double most_glimpsed = 1 << 18;  // steps: more of them seldom say more

  std::vector<Entry>::iterator most_promising() {
    auto first = entries_.end();
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
      if (entry->moves <= effort_ && (first == entries_.end() || *entry < *first)) first = entry;
    return first;
  }

  void know_more(Entry& entry) {
    if (hopeless(entry)) return drop(entry);
    switch (entry.known) {
      case Entry::Known::nothing:
        return outline(entry);
      case Entry::Known::outline:
        return look_at_chip(entry);
      case Entry::Known::chip:
        return look_at_classes(entry);
      case Entry::Known::classes:
        return look_closely(entry);
      case Entry::Known::alone:
        return price(entry);
    }
  }

  void drop(const Entry& entry) {
    note(entry.least, entry.place);
    pricer_.forget(ways_[entry.place]);
  }

  void outline(Entry& entry) {
    const Way& way = ways_[entry.place];
    const Pricer::Outline known = pricer_.outline(way, bytes_, static_cast<std::int64_t>(effort_), limit_for(entry));
    entry.least = known.least;
    if (hopeless(entry)) return drop(entry);
    const schedule::Algorithm& algorithm = schedule::algorithm_named(way.algorithm);
    const schedule::Request request = pricer_.request(way);
    entry.own = static_cast<double>(known.moves) / pricer_.group().ranks();
    const schedule::Symmetry symmetry = schedule::symmetry_of(algorithm, request);
    entry.moves = entry.own * symmetry.classes() + std::min<double>(entry.own, symmetry.ranks()) * kinds(symmetry);
    const bool glimpsed = effort_ > most_glimpsed;
    if (known.whole && (glimpsed || entry.moves <= 4 * effort_))
      entry.known = Entry::Known::outline;
    else
      entry.moves = 4 * effort_;
    if (const Time limit = limit_for(entry); limit != forever && !glimpsed)
      found(entry,
            least_at_a_glimpse(algorithm, request, pricer_.machine(), pricer_.options(bytes_),
                               static_cast<std::int64_t>(effort_), limit),
            limit);
    go_on(entry);
  }

  // Of ranks, that a price goes through.
  double kinds(const schedule::Symmetry& symmetry) const {
    const auto folded = folded_symmetry(symmetry, pricer_.machine(), pricer_.options(bytes_));
    return folded ? folded->classes() : pricer_.group().ranks();
  }

  bool too_large(const Entry& entry) {
    if (entry.moves <= static_cast<double>(limits_.most_moves)) return false;
    choice_.untried.push_back(ways_[entry.place]);
    pricer_.forget(ways_[entry.place]);
    return true;
  }

  // What ranks share with the others of their chip, where that says more than one of them and less work than all kinds.
  void look_at_chip(Entry& entry) {
    const Rank cores = pricer_.machine().cores();
    const double moves = entry.own * cores;
    entry.known = Entry::Known::chip;
    if (const Time limit = limit_for(entry); cores > 1 && limit != forever && 2 * moves < entry.moves)
      found(entry, pricer_.least_of_chip(ways_[entry.place], bytes_, limit), limit);
    go_on(entry);
  }

  void look_at_classes(Entry& entry) {
    if (too_large(entry)) return;
    const Way& way = ways_[entry.place];
    const Time limit = limit_for(entry);
    const schedule::Task task = task_of(schedule::algorithm_named(way.algorithm), pricer_.request(way));
    const Pattern& pattern = pricer_.uncounted(way);
    if (!known_.insert({way.algorithm, content(pattern)}).second) return pricer_.forget(way);
    found(entry, least_by_classes(pattern, pricer_.machine(), pricer_.options(bytes_), limit), limit);
    entry.known = Entry::Known::classes;
    entry.moves =
        entry.own * (has_empty_chunks(task, pricer_.options(bytes_)) ? pattern.ranks() : kinds(pattern.symmetry()));
    go_on(entry);
  }

  void look_closely(Entry& entry) {
    if (too_large(entry)) return;
    const Way& way = ways_[entry.place];
    const Time limit = limit_for(entry);
    found(entry, pricer_.least(way, bytes_, limit), limit);
    entry.known = Entry::Known::alone;
    entry.moves *= looks_a_price;
    go_on(entry);
  }

  void found(Entry& entry, Time least, Time limit) {
    entry.out = least == forever;
    entry.least = std::max(entry.least, least == forever ? limit : least);
  }

  void go_on(const Entry& entry) {
    if (entry.out || hopeless(entry)) return drop(entry);
    entries_.push_back(entry);
  }

  bool hopeless(const Entry& entry) {
    const Time limit = limit_for(entry);
    return limit != forever && static_cast<double>(entry.least) > static_cast<double>(limit) * (1 - limits_.within);
  }

  // Algorithms that make nothing of a shape make one schedule of several: the first of these is enough.
  using Content = std::pair<std::uint64_t, std::uint64_t>;
  static Content content(const Pattern& pattern) {
    Content hash{0xcbf29ce484222325, 0x9e3779b97f4a7c15};  // FNV-1a, and the same with other numbers
    const auto add = [&](std::int64_t value) {
      hash.first = (hash.first ^ static_cast<std::uint64_t>(value)) * 0x100000001b3;
      hash.second = (hash.second ^ static_cast<std::uint64_t>(value)) * 0x9fb21c651e98df25;
      hash.second ^= hash.second >> 29;
    };
    for (const schedule::Axis& axis : pattern.symmetry().axes) add(static_cast<int>(axis.kind)), add(axis.size);
    add(pattern.task().pieces);
    for (const PatternClass& c : pattern.classes()) {
      add(c.representative);
      for (const Rank peer : c.peers) add(peer);
      for (const Move& m : c.moves) {
        for (const std::int64_t value :
             {std::int64_t{m.waits}, std::int64_t{m.chunks}, std::int64_t{m.peer}, std::int64_t{m.second},
              std::int64_t{m.arrival}, std::int64_t{m.second_arrival}, std::int64_t{m.sources}, std::int64_t{m.summed},
              std::int64_t{m.step}})
          add(value);
        add(m.adds | m.copies_twice << 1 | m.staged << 2 | m.forwards << 3 | m.channel << 4);
      }
      for (const Follower& f : c.followers) add(f.move), add(f.peer);
      for (const std::uint32_t begin : c.begin) add(begin);
    }
    return hash;
  }

  // The least of its algorithm.
  void note(Time time, std::size_t place) {
    const auto own = std::ranges::find_if(
        least_, [&](const Result& r) { return ways_[r.second].algorithm == ways_[place].algorithm; });
    if (own == least_.end())
      least_.emplace_back(time, place);
    else
      *own = std::min(*own, Result{time, place});
  }

  std::vector<Result>::iterator own_best(std::size_t place) {
    return std::ranges::find_if(best_,
                                [&](const Result& r) { return ways_[r.second].algorithm == ways_[place].algorithm; });
  }

  // Beyond it a way is neither its algorithm's best nor that one of the first.
  Time limit_for(const Entry& entry) {
    const auto own = own_best(entry.place);
    Time limit = own == best_.end() ? forever : own->first;
    if (best_.size() >= limits_.algorithms) limit = std::min(limit, best_[limits_.algorithms - 1].first);
    return limit;
  }

  void price(const Entry& entry) {
    const Time limit = limit_for(entry);
    const Result result{pricer_.price(ways_[entry.place], bytes_, false, limit).time, entry.place};
    pricer_.forget(ways_[entry.place]);
    note(result.first == forever ? std::max(entry.least, limit) : result.first, entry.place);
    if (result.first == forever) return;
    ++choice_.priced;
    const auto own = own_best(entry.place);
    if (own == best_.end())
      best_.push_back(result);
    else
      *own = std::min(*own, result);
    std::ranges::sort(best_);
    if (best_.size() > limits_.algorithms) best_.resize(limits_.algorithms);
    std::erase_if(entries_, [&](const Entry& other) {
      const bool out = hopeless(other);
      if (out) drop(other);
      return out;
    });
  }

  Pricer& pricer_;
  const std::vector<Way>& ways_;
  const double bytes_;
  const ChoiceLimits limits_;
  std::vector<Entry> entries_;
  double effort_ = 0;  // moves that may be gone through to know more of a way
  std::set<std::pair<std::string, Content>> known_;
  std::vector<Result> best_;   // of each algorithm
  std::vector<Result> least_;  // likewise, of all that were not the best
  Choice choice_;
};

// Whether parts of the data can be on their way through several ranks, or several levels, at once.
bool worth_cutting(const schedule::Algorithm& algorithm, const Way& way, schedule::Collective c) {
  using enum schedule::Collective;
  return c == broadcast || c == reduce || (c == all_reduce && algorithm.has_levels && way.dims.size() > 1);
}

}  // namespace

std::vector<Rank> usual_dims(std::string_view algorithm, const Machine& machine, Rank ranks) {
  const auto all = shapes(machine, ranks);
  const bool chips = algorithm == "mesh" || algorithm == "kangaring";
  const bool whole = algorithm == "torus" || algorithm == "rdh" || algorithm == "swing" ||
                     algorithm == "hierarchical" || algorithm == "bine";
  if (whole) {
    if (const auto dims = part_of(machine.dims(), ranks); !dims.empty()) return dims;
    return all.back();
  }
  if (chips && all.size() > 1) return all[1];
  return algorithm == "flat_ring" ? all.back() : all.front();
}

std::vector<Way> usual_ways(const Pricer& pricer, double bytes) {
  std::vector<Way> ways;
  const auto serves = [&](const Way& way, const schedule::Algorithm& algorithm) {
    if (way.segments > 1 && !worth_cutting(algorithm, way, pricer.settings().collective)) return false;
    if (!pricer.refusal(way).empty()) return false;
    return way.segments == 1 || !has_empty_chunks(task_of(algorithm, pricer.request(way)), pricer.options(bytes));
  };
  const auto all = shapes(pricer.machine(), pricer.group().ranks());
  for (const auto& [name, algorithm] : schedule::algorithms())
    for (const auto& dims : all) {
      const std::size_t before = ways.size();
      for (const std::int32_t segments : {1, 4, 16, 64})
        for (const std::int32_t channels : {1, 2, 4})
          if (Way way{.algorithm = name, .channels = channels, .segments = segments, .dims = dims};
              serves(way, algorithm))
            ways.push_back(std::move(way));
      if (algorithm.in_a_row && ways.size() > before) break;
    }
  return ways;
}

Choice choose(Pricer& pricer, const std::vector<Way>& ways, double bytes, const ChoiceLimits& limits) {
  return Contest(pricer, ways, bytes, limits).run();
}

std::optional<Cost> fastest(Pricer& pricer, const std::vector<Way>& ways, double bytes) {
  const Choice choice = choose(pricer, ways, bytes);
  if (choice.best.empty()) return std::nullopt;
  return choice.best.front();
}

}  // namespace trellis::sim
