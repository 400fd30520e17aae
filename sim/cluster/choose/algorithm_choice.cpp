#include "sim/cluster/choose/algorithm_choice.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <tuple>

#include "schedule/proof/algorithm_refutation.h"
#include "schedule/schedule_too_large.h"
#include "sim/cluster/choose/pattern_hash.h"
#include "sim/cluster/choose/prefix_lower_bound.h"
#include "sim/hardware/thread_pool.h"
#include "sim/hardware/time/time_too_long.h"

namespace trellis::sim {
namespace {

// A candidate config, and what is known of it so far.
struct Entry {
  // the last look that is done: none, one rank's steps, a chip's, compiling, an uncontended run, a price
  enum class Known : std::uint8_t { nothing, outline, chip, pattern, alone, priced };

  std::size_t place = 0;  // index in the given configs
  int worker = 0;         // index of the worker that examines it; configs that differ only in shape share a worker
  Time least = 0;
  double moves = 0;       // how many moves the next look goes through
  double own = 0;         // moves of one rank
  Time prefix_bound = 0;  // the last prefix lower bound
  bool out = false;       // slower than the best
  Known known = Known::nothing;

  bool operator<(const Entry& o) const {
    return std::tuple(least, moves, place) < std::tuple(o.least, o.moves, o.place);
  }
};

// A branch-and-bound search. Each config is examined in stages, called looks. The cheapest looks come first, and among
// them those at the most promising configs, so that most configs are ruled out before the expensive looks. Two configs
// are always examined at once, whatever the number of processors, so that all machines examine the same configs.
class Contest {
 public:
  Contest(Pricer& pricer, const std::vector<AlgorithmConfig>& configs, double bytes, const ChoiceLimits& limits)
      : pricer_(pricer),
        other_machine_(pricer.machine().spec()),
        other_pricer_(other_machine_, pricer.group(), pricer.settings()),
        configs_(configs),
        bytes_(bytes),
        limits_(limits) {}

  AlgorithmChoice run() {
    std::vector<AlgorithmConfig> shapeless;
    for (std::size_t i = 0; i < configs_.size(); ++i) {
      AlgorithmConfig config = configs_[i];
      config.dims.clear();
      const auto known = std::ranges::find(shapeless, config);
      const int worker = static_cast<int>(known - shapeless.begin()) % workers;
      if (known == shapeless.end()) shapeless.push_back(config);
      entries_[worker].push_back({.place = i, .worker = worker});
    }
    for (effort_ = 256; !done(); effort_ *= 4)
      while (!done() && know_more()) {
      }
    if (!stopped_)
      for (const auto& entries : entries_)
        for (const Entry& entry : entries) choice_.untried.push_back(configs_[entry.place]);
    for (const auto& [time, place] : best_) choice_.best.push_back({configs_[place], bytes_, time});
    for (const Result& r : least_)
      if (own_best(r.second) == best_.end()) choice_.others.push_back({configs_[r.second], bytes_, r.first});
    std::ranges::stable_sort(choice_.others, {}, &ConfigCost::time);
    return std::move(choice_);
  }

 private:
  using Result = std::pair<Time, std::size_t>;  // a time, and the index of its config
  // The effort of a price, as a multiple of one pass over all moves: it visits each move several times, and also
  // computes how transfers share resources.
  static constexpr double looks_a_price = 8;
  static constexpr double longest_prefix = 1 << 18;  // steps; longer prefixes seldom raise the bound
  static constexpr int workers = 2;

  bool used_up(double times = 1) const { return spent_ > times * static_cast<double>(limits_.most_effort); }

  bool done() {
    stopped_ = stopped_ || pricer_.stopped();
    if ((entries_[0].empty() && entries_[1].empty()) || stopped_) return true;
    return !best_.empty() && (used_up(2) || (used_up() && !promising()));
  }

  // Whether the config may still take less than half of the best one's time.
  bool promising(const Entry& entry) const { return best_.empty() || entry.least < best_.front().first / 2; }
  bool promising() const {
    return std::ranges::any_of(entries_, [&](const auto& entries) {
      return std::ranges::any_of(entries, [&](const Entry& entry) { return promising(entry); });
    });
  }

  // Takes the next looks of both workers, several of each, so that both take about equally long. Returns false if the
  // current effort allows no more looks, or if it was stopped.
  bool know_more() {
    constexpr double at_once = 4;
    std::vector<Look> looks[workers];
    for (int worker = 0; worker < workers; ++worker)
      for (double moves = 0; moves < at_once * effort_ && !(used_up() && !looks[worker].empty());) {
        std::optional<Look> look = next_of(worker);
        if (!look) break;
        moves += std::max(look->entry.moves, effort_ / 16);
        looks[worker].push_back(*look);
      }
    pool_.run([&](int worker) {
      for (Look& look : looks[worker])
        if (!attempt(look, pricer(look.entry))) return;
    });
    if (stopped_) return false;
    for (const auto& of_thread : looks)
      for (const Look& look : of_thread) spent_ += look.moves, take(look);
    if (limits_.decided) {
      const std::size_t open = entries_[0].size() + entries_[1].size();
      limits_.decided(1 - static_cast<double>(open) / static_cast<double>(configs_.size()));
    }
    return !looks[0].empty() || !looks[1].empty();
  }

  // One look at one config, and its result.
  struct Look {
    Entry entry;
    Time limit = forever;
    Price price = {};          // the result, if the look prices the config
    PatternHash content = {};  // of its pattern; {}: not known
    std::string wrong = {};    // why the config cannot be used
    double moves = 0;          // the effort that it costs
  };

  std::optional<Look> next_of(int worker) {
    auto& entries = entries_[worker];
    for (;;) {
      auto first = entries.end();
      for (auto entry = entries.begin(); entry != entries.end(); ++entry)
        if (may_go_on(*entry) && (first == entries.end() || goes_before(*entry, *first))) first = entry;
      if (first == entries.end()) return {};
      const Entry entry = *first;
      entries.erase(first);
      if (hopeless(entry))
        drop(entry);
      else if (!too_large(entry))
        return Look{.entry = entry, .limit = limit_for(entry)};
    }
  }

  // Whether the current effort allows the next look at the config. Beyond the first look it allows 16 times as many
  // moves: a config that is priced early rules out many others.
  bool may_go_on(const Entry& entry) const {
    constexpr double for_a_price = 16;
    return used_up() || entry.moves <= effort_ * (entry.known == Entry::Known::nothing ? 1 : for_a_price);
  }

  // Once the effort is used up, the cheapest look at a promising config goes first, so that a config of which few ranks
  // must be simulated is priced soon. Once twice the effort is spent and nothing is priced, the config that is nearest
  // to a price goes first.
  bool goes_before(const Entry& a, const Entry& b) const {
    if (!used_up()) return a < b;
    if (used_up(2)) return a.known != b.known ? a.known > b.known : a < b;
    const auto key = [&](const Entry& e) { return std::tuple(!promising(e), e.moves, e.least, e.place); };
    return key(a) < key(b);
  }

  Pricer& pricer(const Entry& entry) { return entry.worker == 0 ? pricer_ : other_pricer_; }

  // Carries out the look. Returns false if it was stopped, and nothing was learned.
  bool attempt(Look& look, Pricer& pricer) {
    look.moves = look.entry.moves;
    try {
      look_at(look, pricer);
    } catch (const schedule::ScheduleTooLarge& error) {
      look.wrong = error.what();
    } catch (const schedule::RefutedAlgorithm& error) {
      look.wrong = error.what();
    } catch (const TimeTooLong& error) {
      look.wrong = error.what();
    } catch (const CompilationStopped&) {
      stopped_ = true;
      return false;
    }
    return true;
  }

  void look_at(Look& look, Pricer& pricer) const {
    switch (look.entry.known) {
      case Entry::Known::nothing:
        return outline(look, pricer);
      case Entry::Known::outline:
        return look_at_chip(look, pricer);
      case Entry::Known::chip:
        return look_at_pattern(look, pricer);
      case Entry::Known::pattern:
        return look_closely(look, pricer);
      case Entry::Known::alone:
        return price(look, pricer);
      case Entry::Known::priced:
        return;
    }
  }

  // Records what was learned of one config, and what follows for the others.
  void take(const Look& look) {
    const Entry& entry = look.entry;
    const AlgorithmConfig& config = configs_[entry.place];
    if (!look.wrong.empty()) {
      choice_.left_out.push_back({config, look.wrong});
      return pricer(entry).forget(config);
    }
    if (look.content != PatternHash{} && !known_.insert({config.algorithm, look.content}).second)
      return pricer(entry).forget(config);
    if (entry.known == Entry::Known::priced) {
      pricer(entry).forget(config);
      const Time time = look.price.time;
      note(time == forever ? std::max(entry.least, look.limit) : time, entry.place);
      if (time == forever) return;
      compare({time, entry.place});
      if (best_.front() == Result(time, entry.place)) choice_.price = look.price;
    } else if (entry.out || hopeless(entry)) {
      drop(entry);
    } else {
      entries_[entry.worker].push_back(entry);
    }
  }

  void drop(const Entry& entry) {
    note(entry.least, entry.place);
    pricer(entry).forget(configs_[entry.place]);
  }

  void outline(Look& look, Pricer& pricer) const {
    Entry& entry = look.entry;
    const AlgorithmConfig& config = configs_[entry.place];
    const std::int64_t most_steps = used_up() ? Pricer::any_steps : static_cast<std::int64_t>(effort_);
    const Pricer::Outline known = pricer.outline(config, bytes_, most_steps, look.limit);
    entry.least = std::max(entry.least, known.least);
    look.moves = static_cast<double>(known.steps);
    if (hopeless(entry.least, look.limit)) return;
    const schedule::Algorithm& algorithm = schedule::algorithm_named(config.algorithm);
    const schedule::Request request = pricer.request(config);
    entry.own = static_cast<double>(known.moves) / pricer.group().ranks();
    const schedule::Symmetry symmetry = schedule::symmetry_of(algorithm, request);
    entry.moves =
        entry.own * symmetry.classes() + std::min<double>(entry.own, symmetry.ranks()) * kinds(symmetry, pricer);
    const bool past_prefixes = effort_ > longest_prefix;
    if (known.whole && (used_up() || past_prefixes || entry.moves <= 4 * effort_))
      entry.known = Entry::Known::outline;
    else
      entry.moves = effort_ * (known.whole ? 4 : std::clamp(still_to_go(pricer, known.least, look.limit), 4.0, 64.0));
    if (look.limit == forever || past_prefixes || used_up()) return;
    const Time prefix_bound = prefix_lower_bound(
        algorithm, request, pricer.machine(), pricer.options(bytes_),
        [&](Rank rank, std::size_t least) { return pricer.steps(config, rank, least); },
        static_cast<std::int64_t>(effort_), look.limit);
    look.moves += effort_;
    if (prefix_bound == entry.prefix_bound && entry.known == Entry::Known::nothing && effort_ < longest_prefix)
      entry.moves = std::max(entry.moves, longest_prefix);  // the bound did not grow: go straight to the longest prefix
    entry.prefix_bound = prefix_bound;
    found(look, prefix_bound);
  }

  // By what factor the examined prefix must grow for the bound to reach the limit, if the bound grows linearly. If the
  // factor is large, looks at lengths in between would not rule the config out.
  static double still_to_go(const Pricer& pricer, Time least, Time limit) {
    const Time launch = pricer.machine().overheads(pricer.settings().era).launched(pricer.group().ranks());
    if (limit == forever || least <= launch) return 1;
    return 1.1 * static_cast<double>(limit - launch) / static_cast<double>(least - launch);
  }

  // The number of ranks that a price simulates.
  double kinds(const schedule::Symmetry& symmetry, const Pricer& pricer) const {
    const auto folded = folded_ranks(symmetry, pricer.machine(), pricer.options(bytes_));
    return folded ? static_cast<double>(folded->size()) : pricer.group().ranks();
  }

  bool too_large(const Entry& entry) {
    const bool goes_through_all = entry.known == Entry::Known::chip || entry.known == Entry::Known::pattern;
    if (!goes_through_all || entry.moves <= static_cast<double>(limits_.most_moves)) return false;
    choice_.untried.push_back(configs_[entry.place]);
    pricer(entry).forget(configs_[entry.place]);
    return true;
  }

  // Computes a bound from all ranks of the first rank's chip, with the resources that they share. Skipped if a chip has
  // only one rank, if there is no limit yet, or if this costs at least half as much as compiling the pattern.
  void look_at_chip(Look& look, Pricer& pricer) const {
    Entry& entry = look.entry;
    const Rank cores = pricer.machine().cores();
    const double moves = entry.own * cores;
    entry.known = Entry::Known::chip;
    if (cores > 1 && look.limit != forever && 2 * moves < entry.moves)
      found(look, pricer.least_of_chip(configs_[entry.place], bytes_, look.limit));
  }

  void look_at_pattern(Look& look, Pricer& pricer) const {
    Entry& entry = look.entry;
    const AlgorithmConfig& config = configs_[entry.place];
    const schedule::Task task = task_of(schedule::algorithm_named(config.algorithm), pricer.request(config));
    const CompiledSchedule& pattern = pricer.uncounted(config);
    look.content = pattern_hash(pattern);
    entry.known = Entry::Known::pattern;
    entry.moves = entry.own * (has_empty_chunks(task, pricer.options(bytes_)) ? pattern.ranks()
                                                                              : kinds(pattern.symmetry(), pricer));
  }

  void look_closely(Look& look, Pricer& pricer) const {
    found(look, pricer.least(configs_[look.entry.place], bytes_, look.limit));
    look.entry.known = Entry::Known::alone;
    look.entry.moves *= looks_a_price;
  }

  // A config that is slower than the limit need not be proved right: its price is not used.
  void price(Look& look, Pricer& pricer) const {
    const AlgorithmConfig& config = configs_[look.entry.place];
    look.price = pricer.unproved_price(config, bytes_, look.limit);
    if (look.price.time != forever) pricer.expect_right(config);
    look.entry.known = Entry::Known::priced;
  }

  static void found(Look& look, Time least) {
    look.entry.out = least == forever;
    look.entry.least = std::max(look.entry.least, least == forever ? look.limit : least);
  }

  bool hopeless(const Entry& entry) { return hopeless(entry.least, limit_for(entry)); }
  bool hopeless(Time least, Time limit) const {
    return limit != forever && static_cast<double>(least) > static_cast<double>(limit) * (1 - limits_.within);
  }

  // Keeps the least time of each algorithm.
  void note(Time time, std::size_t place) {
    const auto own = std::ranges::find_if(
        least_, [&](const Result& r) { return configs_[r.second].algorithm == configs_[place].algorithm; });
    if (own == least_.end())
      least_.emplace_back(time, place);
    else
      *own = std::min(*own, Result{time, place});
  }

  std::vector<Result>::iterator own_best(std::size_t place) {
    return std::ranges::find_if(
        best_, [&](const Result& r) { return configs_[r.second].algorithm == configs_[place].algorithm; });
  }

  // The time beyond which a config is dropped: its algorithm has a faster one, or enough other algorithms have.
  Time limit_for(const Entry& entry) {
    const auto own = own_best(entry.place);
    Time limit = own == best_.end() ? forever : own->first;
    if (best_.size() >= limits_.algorithms) limit = std::min(limit, best_[limits_.algorithms - 1].first);
    return limit;
  }

  void compare(const Result& result) {
    ++choice_.priced;
    const auto own = own_best(result.second);
    if (own == best_.end())
      best_.push_back(result);
    else
      *own = std::min(*own, result);
    std::ranges::sort(best_);
    if (best_.size() > limits_.algorithms) best_.resize(limits_.algorithms);
    for (auto& entries : entries_)
      std::erase_if(entries, [&](const Entry& other) {
        const bool out = hopeless(other);
        if (out) drop(other);
        return out;
      });
  }

  Pricer& pricer_;  // for worker 0; other_pricer_ is for worker 1
  const Machine other_machine_;
  Pricer other_pricer_;
  const std::vector<AlgorithmConfig>& configs_;
  const double bytes_;
  const ChoiceLimits limits_;
  std::vector<Entry> entries_[workers];
  double effort_ = 0;  // moves that may be simulated to learn more of one config
  double spent_ = 0;   // moves of all looks so far
  std::atomic<bool> stopped_ = false;
  std::set<std::pair<std::string, PatternHash>> known_;
  std::vector<Result> best_;   // the fastest price of each algorithm
  std::vector<Result> least_;  // the least price or lower bound of each algorithm, over all configs decided so far
  AlgorithmChoice choice_;
  ThreadPool pool_{workers};
};

}  // namespace

AlgorithmChoice choose(Pricer& pricer, const std::vector<AlgorithmConfig>& configs, double bytes,
                       const ChoiceLimits& limits) {
  return Contest(pricer, configs, bytes, limits).run();
}

std::optional<ConfigCost> fastest(Pricer& pricer, const std::vector<AlgorithmConfig>& configs, double bytes) {
  const AlgorithmChoice choice = choose(pricer, configs, bytes);
  return choice.best.empty() ? std::nullopt : std::optional(choice.best.front());
}

}  // namespace trellis::sim
