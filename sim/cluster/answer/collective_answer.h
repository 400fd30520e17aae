// One question about a collective on a simulated machine, and its answer: what `trellis sim`, `trellis bench --on`,
// `trellis machine tune` and `search`, the pages of reports and the Python package show.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/answer/noise.h"
#include "sim/cluster/answer/progress_monitor.h"
#include "sim/cluster/choose/algorithm_choice.h"
#include "sim/cluster/price/timeline.h"
#include "sim/cluster/price/uncertainty_interval.h"

namespace trellis::sim {

struct CollectiveQuestion {
  Pricer::Settings settings;  // the collective; `stopped` is not used
  RankGroup group;            // the ranks that take part
  double bytes = 0;           // of the larger buffer

  // At most one of these two is set. If neither is, the fastest config is chosen.
  std::optional<AlgorithmConfig> config = {};    // without dims: the usual ones of its algorithm
  const schedule::Schedule* schedule = nullptr;  // of as many ranks as the group

  std::vector<std::int64_t> blocks = {};  // elements of each block, where these are uneven; empty: all alike
  double within = usual_within;           // as in ChoiceLimits
  Time limit = forever;                   // a config or schedule that takes longer is given up: its time is `forever`
  NoiseOptions noise = {};
  bool interval = true;
  bool launches = false;         // also the times by other launches, unless the settings name an era
  bool path = false;             // also the price's critical path
  bool phases = false;           // also phases, and bytes by resource
  bool links = false;            // also bytes by resource
  bool timeline = false;         // what ran where and when, and all of the above but the path
  std::vector<Rank> shown = {};  // ranks whose rows the timeline must have; empty: the first ones
};

// The time of the same collective if it is launched another way. `by` is one of `launches` in machine/launch_mode.h.
struct LaunchVariant {
  std::string_view by;
  std::string era;
  Time time = 0, low = 0, high = 0;
};

struct CollectiveAnswer {
  AlgorithmConfig config;  // that was chosen, or asked for; of a schedule, its algorithm
  AlgorithmChoice choice;  // the configs that it was chosen from; empty: it was not chosen
  Price price;             // its time is `forever` when it was interrupted, or beyond the limit
  UncertaintyInterval interval;
  std::string era;  // of the software: the question's, or the machine's usual one; empty: there is none
  std::vector<LaunchVariant> launches;  // times by other launches, where they were asked for
  std::vector<AlgorithmConfig> draws;   // configs of other algorithms whose intervals overlap the chosen one's
  NoisyTimes noisy;
  std::vector<CollectivePhase> phases;
  std::vector<double> carried;      // bytes, by resource
  std::optional<RunTimeline> seen;  // the timeline
  double moves = 0;                 // the run's moves, set if they are too many to record phases or the timeline
  std::string interrupted;          // what is missing because the progress monitor stopped it; empty: nothing
};

// A machine, with caches of what earlier questions computed on it.
class PricingSession {
 public:
  // The progress monitor must outlive the session.
  explicit PricingSession(MachineSpec, ProgressMonitor* = nullptr);

  const Machine& machine() const { return machine_; }
  const MachineSpec& spec() const { return machine_.spec(); }
  ProgressMonitor& watch() const { return *watch_; }
  Pricer& pricer(const CollectiveQuestion&);  // with the patterns of earlier questions of this kind

 private:
  const Machine machine_;
  NoProgressMonitor nobody_;
  ProgressMonitor* watch_;
  std::vector<std::unique_ptr<Pricer>> pricers_;
};

// The candidates for the question: the config that it names, with the usual dims if it names none, or else all usual
// configs. Throws invalid_argument, with the reason, if there is none.
std::vector<AlgorithmConfig> configs_for(const CollectiveQuestion&, const Pricer&);

// Throws invalid_argument when no algorithm serves, when all have too many moves, or when those that serve are wrong:
// an algorithm is proved on a small machine of the same form (schedule/proof/algorithm_refutation.h) before its price
// is told.
CollectiveAnswer answer(const CollectiveQuestion&, PricingSession&);

}  // namespace trellis::sim
