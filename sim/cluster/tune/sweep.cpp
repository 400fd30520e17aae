#include "sim/cluster/tune/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "kernels/dispatch/build_id.h"
#include "kernels/types/fnv1a.h"
#include "sim/hardware/thread_pool.h"
#include "text/number_parsing.h"
#include "text/words.h"

namespace trellis::sim {
namespace {

using Key = std::pair<AlgorithmConfig, double>;

// State shared by the threads.
class SweepWork {
 public:
  SweepWork(const SweepSpec& sweep, const SweepControl& control) : sweep_(sweep), control_(control) {
    const std::set<AlgorithmConfig> wanted(sweep.configs.begin(), sweep.configs.end());
    const std::set<double> sizes(sweep.sizes.begin(), sweep.sizes.end());
    for (const ConfigCost& c : control.known)
      if (wanted.contains(c.config) && sizes.contains(c.bytes) && known_.insert({c.config, c.bytes}).second) note(c);
    for (const ConfigCost& c : control.slower) {
      Time& over = slower_[{c.config, c.bytes}];
      over = std::max(over, c.time);
    }
  }

  // One thread's loop. It takes whole configs, each with all its sizes, as these share a pattern.
  void part(const MachineSpec& spec) {
    try {
      CancellationMonitor watch(control_.stopped);
      PricingSession priced(spec, &watch);  // reading figures records what was read, so each thread has its own
      for (std::size_t i = next_++; i < sweep_.configs.size(); i = next_++) {
        if (!price_all(priced, sweep_.configs[i])) return;
      }
    } catch (...) {
      const std::lock_guard hold(mutex_);
      if (!error_) error_ = std::current_exception();
      stop_ = true;
    }
  }

  std::vector<ConfigCost> result() {
    if (error_) std::rethrow_exception(error_);
    return std::move(costs_);
  }

 private:
  bool price_all(PricingSession& priced, const AlgorithmConfig& config) {
    CollectiveQuestion question = question_for(sweep_, config, 0);
    for (const double bytes : sweep_.sizes) {
      if (known_.contains({config, bytes})) continue;
      if (stop_ || (control_.stopped && control_.stopped())) return false;
      const Time limit = limit_for(bytes);
      if (const auto over = slower_.find({config, bytes}); over != slower_.end() && over->second >= limit) continue;
      question.bytes = bytes, question.limit = limit;
      const ConfigCost cost{config, bytes, price(priced, question)};
      if (cost.time == forever && control_.stopped && control_.stopped()) return false;  // stopped while pricing
      const std::lock_guard hold(mutex_);
      if (cost.time == forever) {
        if (control_.given_up) control_.given_up({config, bytes, limit});
        continue;
      }
      note(cost);
      if (control_.found) control_.found(cost);
    }
    priced.pricer(question).forget(*question.config);
    return true;
  }

  // Returns `forever` for a point that is slower than all that are wanted, as soon as a lower bound or the run shows
  // it. Which points are given up depends on the order; which ones are the fastest does not.
  static Time price(PricingSession& priced, const CollectiveQuestion& q) {
    Pricer& pricer = priced.pricer(q);
    try {
      const bool slower = q.limit != forever && (pricer.outline(*q.config, q.bytes).least > q.limit ||
                                                 pricer.least(*q.config, q.bytes, q.limit) > q.limit);
      if (slower) return forever;
    } catch (const CompilationStopped&) {
      return forever;
    }
    return answer(q, priced).price.time;
  }

  Time limit_for(double bytes) {
    if (sweep_.wanted == 0) return forever;
    const std::lock_guard hold(mutex_);
    const std::multiset<Time>& fastest = fastest_[bytes];
    return fastest.size() < sweep_.wanted ? sweep_.limit : std::min(sweep_.limit, *fastest.rbegin());
  }

  void note(const ConfigCost& cost) {
    if (sweep_.wanted > 0) {
      std::multiset<Time>& fastest = fastest_[cost.bytes];
      fastest.insert(cost.time);
      if (fastest.size() > sweep_.wanted) fastest.erase(std::prev(fastest.end()));
    }
    costs_.push_back(cost);
  }

  const SweepSpec& sweep_;
  const SweepControl& control_;
  std::set<Key> known_;
  std::map<Key, Time> slower_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::vector<ConfigCost> costs_;
  std::map<double, std::multiset<Time>> fastest_;  // of each size, as many as are wanted
  std::exception_ptr error_;
};

constexpr std::string_view longer_than = "over";

// The collective and everything else of a request except the config.
std::string subject(const SweepSpec& s) {
  const schedule::CollectiveOperation& o = s.settings.operation;
  return fmt::format("{}.{}.{}{}.{}.{}-{}", schedule::name(o.collective), s.group.name, fmt::join(s.group.dims, "x"),
                     o.in_place ? ".in" : "", s.settings.element, o.root, o.peer);
}

}  // namespace

CollectiveQuestion question_for(const SweepSpec& s, const AlgorithmConfig& config, double bytes, Time limit) {
  CollectiveQuestion q{
      .settings = s.settings, .group = s.group, .bytes = bytes, .config = config, .limit = limit, .interval = false};
  if (config.dims.empty()) q.config->dims = s.group.dims;
  return q;
}

std::vector<ConfigCost> sweep(const Machine& machine, const SweepSpec& sweep, const SweepControl& control) {
  SweepWork work(sweep, control);
  ThreadPool(control.threads).run([&](int) { work.part(machine.spec()); });
  return work.result();
}

std::string fingerprint(const MachineSpec& spec, std::string_view era) {
  std::string text = fmt::format("{} {} {}\n", spec.name, spec.chip, era.empty() ? std::string_view(spec.era) : era);
  for (const TopologyLevel& level : spec.levels)
    text += fmt::format("{} {} {}\n", level.kind, level.name, fmt::join(level.dims, "x"));
  for (const Defect& d : spec.defects)
    text += fmt::format("{} {} {} {}\n", static_cast<int>(d.kind), d.from, d.to, d.factor);
  text += spec.figures.text() + kernels::build_id();
  return fmt::format("{:016x}", kernels::fnv1a(text));
}

std::string point_line(std::string_view fingerprint, const SweepSpec& s, const ConfigCost& c) {
  return fmt::format("{} {} {} {} {} ps\n", fingerprint, subject(s), text_of(c.config), c.bytes, c.time);
}

std::string slower_line(std::string_view fingerprint, const SweepSpec& s, const ConfigCost& c) {
  return fmt::format("{} {} {} {} {} {} ps\n", fingerprint, subject(s), text_of(c.config), c.bytes, longer_than,
                     c.time);
}

namespace {

std::vector<ConfigCost> read_costs(std::string_view text, std::string_view fingerprint, const SweepSpec& s,
                                   bool slower) {
  std::vector<ConfigCost> points;
  const std::string beginning = fmt::format("{} {} ", fingerprint, subject(s));
  for (std::string_view line : text::split(text, '\n')) {
    if (!line.starts_with(beginning)) continue;
    line.remove_prefix(beginning.size());
    const std::string_view config = schedule::config_at_start_of(line);
    auto words = text::words(line.substr(config.size()));
    if (slower != (words.size() == 4 && words[1] == longer_than)) continue;
    if (slower) words.erase(words.begin() + 1);
    if (words.size() != 3 || words[2] != "ps") continue;
    const auto bytes = text::number<double>(words[0]);
    const auto time = text::number<Time>(words[1]);
    if (!bytes || !time) continue;
    points.push_back({.config = algorithm_config_named(config), .bytes = *bytes, .time = *time});
  }
  return points;
}

}  // namespace

std::vector<ConfigCost> read_points(std::string_view text, std::string_view fingerprint, const SweepSpec& s) {
  return read_costs(text, fingerprint, s, false);
}

std::vector<ConfigCost> read_slower(std::string_view text, std::string_view fingerprint, const SweepSpec& s) {
  return read_costs(text, fingerprint, s, true);
}

}  // namespace trellis::sim
