#include "sim/cluster/choose/schedule_cache.h"

#include <utility>

namespace trellis::sim {
namespace {

constexpr std::int64_t most_kept = 400'000;  // steps and moves, of some 100 bytes each

}  // namespace

std::shared_ptr<const ProgramPrefix> ScheduleCache::steps(const Config& config, const schedule::Algorithm& algorithm,
                                                          const schedule::Request& request, Rank rank,
                                                          std::size_t least, const std::function<void()>& poll) {
  const std::pair key{config, rank};
  {
    const std::lock_guard lock(mutex_);
    const auto found = steps_.find(key);
    if (found != steps_.end() && (found->second->whole || found->second->program.steps.size() >= least))
      return found->second;
  }
  auto written = std::make_shared<ProgramPrefix>();
  written->whole = watch_program(algorithm, request, rank, [&](const schedule::Program& p) {
    schedule::Program& kept = written->program;
    schedule::Step step = p.steps.back();
    kept.set_after(step, p.after(step));
    kept.steps.push_back(step);
    if (kept.steps.size() % 1024 == 0) poll();
    return kept.steps.size() < least;
  });
  const std::lock_guard lock(mutex_);
  const auto shorter = steps_.find(key);
  const std::int64_t kept = shorter == steps_.end() ? 0 : std::ssize(shorter->second->program.steps);
  if (takes(std::ssize(written->program.steps) - kept)) steps_[key] = written;
  return written;
}

std::shared_ptr<const CompiledSchedule> ScheduleCache::compiled(const Config& config, std::int64_t elements) const {
  const std::lock_guard lock(mutex_);
  const auto found = compiled_.find({config, elements});
  return found == compiled_.end() ? nullptr : found->second;
}

void ScheduleCache::keep(const Config& config, const std::shared_ptr<const CompiledSchedule>& schedule,
                         std::int64_t elements) {
  std::int64_t moves = 0;
  for (const RankClassProgram& c : schedule->classes()) moves += std::ssize(c.moves);
  const std::lock_guard lock(mutex_);
  if (!compiled_.contains({config, elements}) && takes(moves)) compiled_.emplace(std::pair(config, elements), schedule);
}

bool ScheduleCache::takes(std::int64_t more) {
  if (kept_ + more > most_kept) return false;
  kept_ += more;
  return true;
}

std::shared_ptr<ScheduleCache> ScheduleCaches::of(schedule::Collective collective, Rank ranks, Rank root) {
  const std::lock_guard lock(mutex_);
  auto& shelf = shelves_[{collective, ranks, root}];
  if (!shelf) shelf = std::make_shared<ScheduleCache>();
  return shelf;
}

}  // namespace trellis::sim
