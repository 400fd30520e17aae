// Caches the first steps of programs, and compiled schedules, by config. All choices of one collective among the same
// number of ranks share them, wherever the ranks lie and whatever the message's size. Thread-safe, and of limited size.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "schedule/algorithms/algorithm_config.h"
#include "sim/cluster/price/compiled_schedule.h"

namespace trellis::sim {

// The first steps of one rank's program.
struct ProgramPrefix {
  schedule::Program program;
  bool whole = false;  // there are no more
};

class ScheduleCache {
 public:
  using Config = schedule::AlgorithmConfig;

  // At least so many of the rank's steps, or all that there are. `poll` is called now and then, and may throw.
  std::shared_ptr<const ProgramPrefix> steps(const Config&, const schedule::Algorithm&, const schedule::Request&, Rank,
                                             std::size_t least, const std::function<void()>& poll);
  // `elements`: how many the message has, if they are so few that some chunks are empty; 0: no chunk is. Returns null
  // if nothing is kept.
  std::shared_ptr<const CompiledSchedule> compiled(const Config&, std::int64_t elements = 0) const;
  void keep(const Config&, const std::shared_ptr<const CompiledSchedule>&, std::int64_t elements = 0);

 private:
  bool takes(std::int64_t more);

  mutable std::mutex mutex_;
  std::map<std::pair<Config, Rank>, std::shared_ptr<const ProgramPrefix>> steps_;
  std::map<std::pair<Config, std::int64_t>, std::shared_ptr<const CompiledSchedule>> compiled_;
  std::int64_t kept_ = 0;  // steps and moves
};

// A ScheduleCache for each collective, number of ranks and root.
class ScheduleCaches {
 public:
  std::shared_ptr<ScheduleCache> of(schedule::Collective, Rank ranks, Rank root);

 private:
  std::mutex mutex_;
  std::map<std::tuple<schedule::Collective, Rank, Rank>, std::shared_ptr<ScheduleCache>> shelves_;
};

}  // namespace trellis::sim
