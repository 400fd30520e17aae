// Groups of ranks, and what an algorithm config costs in one: its price, and cheaper lower bounds.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "schedule/algorithms/algorithm_config.h"
#include "sim/cluster/choose/rank_lower_bound.h"
#include "sim/cluster/choose/schedule_cache.h"
#include "sim/cluster/price/price.h"

namespace trellis::sim {

using schedule::algorithm_config_named;
using schedule::AlgorithmConfig;
using schedule::family_of;
using schedule::text_of;

// A group of ranks that do a collective together, and its shape, innermost dimension first.
struct RankGroup {
  std::string name;  // "all", "inner-16", "across-4"
  std::vector<Rank> dims;
  std::vector<Rank> members = {};  // empty: all ranks of the machine
  bool across = false;             // one rank of each unit, instead of all ranks of one unit
  Rank ranks() const;
};

// All ranks; the ranks of the first chip, ring, plane, host ...; and one rank of each of these. The largest group
// first.
std::vector<RankGroup> groups_of(const Machine&);
RankGroup first_ranks(const Machine&, Rank count);     // whole dimensions where the count fits, else a row
RankGroup first_in_a_row(const Machine&, Rank count);  // 0: all
// Throws invalid_argument and lists the known names.
RankGroup group_named(const Machine&, std::string_view);

inline constexpr Rank last_rank = -1;  // of a group, as the receiver of send_recv

struct ConfigCost {
  AlgorithmConfig config;
  double bytes = 0;
  Time time = 0;
};

// Prices configs of one collective in one group. Caches for each config what does not depend on the size. Not
// thread-safe.
class Pricer {
 public:
  struct Settings {
    schedule::CollectiveOperation operation = {.peer = last_rank};
    std::string era = {};  // empty: the machine's usual one
    double element = 4;    // bytes
    bool fold = true;
    std::function<bool(Time, double)> stopped = {};  // as in RunSettings
    std::shared_ptr<ScheduleCache> shelf = {};       // for this collective, ranks and root; null: makes its own
  };
  Pricer(const Machine&, RankGroup, Settings);

  std::string refusal(const AlgorithmConfig&) const;  // why the algorithm cannot be used this way; empty if it can
  // Throws RefutedAlgorithm (schedule/proof/algorithm_refutation.h) where the algorithm's schedules are wrong. Each
  // config is proved once.
  void expect_right(const AlgorithmConfig&);
  // The functions below throw ScheduleTooLarge for a config of too many chunks or steps, and CompilationStopped where
  // the settings say stop.
  Price price(const AlgorithmConfig&, double bytes, bool explain = false, Time limit = forever);  // proves it first
  Price unproved_price(const AlgorithmConfig&, double bytes, Time limit = forever);  // does not prove the config right
  Time least(const AlgorithmConfig&, double bytes, Time limit = forever);            // a lower bound
  struct Outline {
    Time least = 0;
    std::int64_t moves = 0;  // of all ranks, if each has as many as the first rank
    std::int64_t steps = 0;  // of the first rank
    bool whole = true;       // false: there are more steps than were looked at
  };
  static constexpr std::int64_t any_steps = std::numeric_limits<std::int64_t>::max();
  std::shared_ptr<const ProgramPrefix> steps(const AlgorithmConfig&, Rank, std::size_t least) const;
  // A cheaper lower bound, from one rank's steps. Stops after `most_steps`, or once the bound exceeds the limit.
  Outline outline(const AlgorithmConfig&, double bytes, std::int64_t most_steps = any_steps, Time limit = forever);
  // A lower bound from all moves of the ranks of the first rank's chip. Returns `forever` if it exceeds the limit.
  Time least_of_chip(const AlgorithmConfig&, double bytes, Time limit = forever);
  // The pattern stays valid until its config is forgotten or asked for with another size.
  const CompiledSchedule& pattern(const AlgorithmConfig&, double bytes);
  const CompiledSchedule& uncounted(const AlgorithmConfig&);               // likewise, as if no chunk were empty
  void forget(const AlgorithmConfig& config) { patterns_.erase(config); }  // drops what is cached for it

  schedule::Request request(const AlgorithmConfig&) const;
  PriceOptions options(double bytes, Time limit = forever) const;
  const Machine& machine() const { return machine_; }
  const RankGroup& group() const { return group_; }
  const Settings& settings() const { return settings_; }
  bool stopped() const { return settings_.stopped && settings_.stopped(0, 0); }

 private:
  const Machine& machine_;
  RankGroup group_;
  Settings settings_;
  struct Made {
    double bytes = 0;
    std::shared_ptr<const CompiledSchedule> pattern = {};
  };
  std::map<AlgorithmConfig, Made> patterns_;
  std::map<AlgorithmConfig, std::string> refutations_;  // empty: it is right
  std::map<Rank, RankRoutes> routes_;                   // by rank of the machine
  bool look_at(Rank, const AlgorithmConfig&, RankLowerBound&, std::int64_t most_steps, Time limit);
  RankRoutes& routes_from(Rank);
  std::shared_ptr<const CompiledSchedule> compiled(const AlgorithmConfig&) const;
  std::shared_ptr<const CompiledSchedule> sized(const AlgorithmConfig&, double bytes) const;
  CompiledSchedule::Stopped poll() const;
};

// Every algorithm that can do the collective, or those named, with each number of channels and segments. Combinations
// that give nothing new, as the algorithm has no more data to cut, are left out.
std::vector<AlgorithmConfig> configs_of(const Pricer&, const std::vector<std::string>& algorithms,
                                        const std::vector<std::int32_t>& channels,
                                        const std::vector<std::int32_t>& segments);

}  // namespace trellis::sim
