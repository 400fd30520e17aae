#include "sim/cluster/answer/collective_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "schedule/proof/algorithm_refutation.h"
#include "schedule/schedule_too_large.h"
#include "sim/cluster/machine/launch_mode.h"
#include "sim/cluster/price/critical_path.h"
#include "sim/hardware/time/time_too_long.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

// How many pricers a session keeps. A benchmark's rows alternate between two: in place and out of place.
constexpr std::size_t most_kept = 2;

bool is_for(const Pricer& pricer, const CollectiveQuestion& q) {
  const Pricer::Settings &a = pricer.settings(), &b = q.settings;
  return pricer.group().dims == q.group.dims && pricer.group().members == q.group.members &&
         a.operation == b.operation && a.era == b.era && a.element == b.element && a.fold == b.fold;
}

class Answering {
 public:
  Answering(const CollectiveQuestion& q, PricingSession& on)
      : q_(q),
        machine_(on.machine()),
        watch_(on.watch()),
        pricer_(on.pricer(q)),
        options_(pricer_.options(q.bytes, q.limit)) {
    options_.explain = q.path;
    answer_.era = q.settings.era.empty() ? machine_.spec().era : q.settings.era;
  }

  CollectiveAnswer run() {
    try {
      pick();
    } catch (const CompilationStopped&) {
      answer_.price.time = forever;
    }
    if (pattern_ == nullptr) return std::move(answer_);
    price();
    if (answer_.price.time == forever) return std::move(answer_);
    options_.explain = false;
    options_.limit = forever;
    if (q_.interval) find_interval();
    draw();
    if (q_.phases || q_.links || q_.timeline) look();
    return std::move(answer_);
  }

 private:
  void pick() {
    if (q_.schedule != nullptr) {
      answer_.config.algorithm = q_.schedule->algorithm;
      pattern_ = &own_.emplace(*q_.schedule);
    } else if (!q_.blocks.empty()) {
      fit();
    } else if (q_.config) {
      answer_.config = configs_for(q_, pricer_).front();
      pricer_.expect_right(answer_.config);
      pattern_ = &pricer_.pattern(answer_.config, q_.bytes);
    } else {
      choose();
    }
  }

  void choose() {
    watch_.begin("trying the algorithms");
    answer_.choice = sim::choose(pricer_, configs_for(q_, pricer_), q_.bytes,
                                 {.within = q_.within, .decided = [&](double part) { watch_.decided(part); }});
    const bool stopped = watch_.interrupted();
    if (answer_.choice.best.empty() && stopped) {
      answer_.interrupted = "no algorithm was priced";
      return;
    }
    if (answer_.choice.best.empty()) refuse();
    answer_.config = answer_.choice.best.front().config;
    if (!stopped) {
      pattern_ = &pricer_.pattern(answer_.config, q_.bytes);
      return;
    }
    answer_.interrupted = "only some of the algorithms were tried, and no figures but as they are";
    answer_.price = answer_.choice.price;
  }

  // Chooses a config by pricing each with a schedule that is compiled for exactly these block sizes.
  void fit() {
    watch_.begin("trying the algorithms");
    answer_.price.time = forever;
    for (const AlgorithmConfig& config : configs_for(q_, pricer_)) {
      if (watch_.interrupted()) break;
      try {
        fit(config);
      } catch (const schedule::ScheduleTooLarge& error) {
        answer_.choice.left_out.push_back({config, error.what()});
      } catch (const schedule::RefutedAlgorithm& error) {
        answer_.choice.left_out.push_back({config, error.what()});
      } catch (const TimeTooLong& error) {
        answer_.choice.left_out.push_back({config, error.what()});
      }
    }
    if (watch_.interrupted())
      answer_.interrupted = "only some of the algorithms were tried";
    else if (pattern_ == nullptr)
      refuse();
  }

  void fit(const AlgorithmConfig& config) {
    pricer_.expect_right(config);
    CompiledSchedule own(make(schedule::algorithm_named(config.algorithm), pricer_.request(config)), q_.blocks);
    const Time time = sim::price(own, machine_, pricer_.options(q_.bytes, answer_.price.time)).time;
    if (time >= answer_.price.time) return;
    answer_.price.time = time, answer_.config = config;
    pattern_ = &own_.emplace(std::move(own));
  }

  [[noreturn]] void refuse() const {
    const AlgorithmChoice& choice = answer_.choice;
    if (choice.untried.empty() && !choice.left_out.empty())
      text::refuse("{}: {}", text_of(choice.left_out.front().config), choice.left_out.front().why);
    text::refuse("{} of {:.0f} bytes: more moves than can be simulated",
                 schedule::name(q_.settings.operation.collective), q_.bytes);
  }

  void price() {
    watch_.begin("pricing");
    const bool priced = !answer_.choice.best.empty() && !options_.explain;
    answer_.price = priced ? answer_.choice.price : sim::price(*pattern_, machine_, options_);
  }

  void find_interval() {
    if (!answer_.interrupted.empty()) return;
    watch_.begin("pricing again with other figures");
    const UncertaintyInterval by_figures = interval(*pattern_, machine_.spec(), options_, answer_.price.time);
    answer_.interval = by_figures;
    if (!by_figures.all_tried) {
      answer_.interrupted = "not all figures were tried at the ends of their ranges";
      return;
    }
    if (machine_.spec().chip.empty()) return;
    answer_.interval = with_model_error(by_figures, answer_.price.time, collective_error(answer_.era));
    if (q_.launches && q_.settings.era.empty()) launch_otherwise(by_figures);
    find_draws();
  }

  // Prices the other launches. Their ranges are estimated: each combines the range of the launch's own figure with
  // `by_figures`, whose width is reduced in proportion if this launch's time is shorter.
  void launch_otherwise(const UncertaintyInterval& by_figures) {
    for (const std::string_view by : launches) {
      if (by == launch_of(answer_.era)) continue;
      LaunchVariant other{.by = by, .era = era_launched(machine_, "", by)};
      PriceOptions options = options_;
      options.era = other.era;
      other.time = sim::price(*pattern_, machine_, options).time;
      if (other.time == forever) return;
      const Figure& launch = machine_.spec().figures.at(fmt::format("era.{}.launch", other.era));
      const double growth = launch_growth(machine_.overheads(other.era).late, pattern_->ranks());
      const auto ps = [growth](double seconds) { return growth * seconds / in_seconds(1); };
      const auto part = [&](Time t) {
        return static_cast<double>(t) *
               std::min(1.0, static_cast<double>(other.time) / static_cast<double>(answer_.price.time));
      };
      const Time lows[] = {other.time - static_cast<Time>(part(answer_.price.time - by_figures.low)),
                           other.time - static_cast<Time>(ps(launch.value - launch.low))};
      const double above = std::hypot(part(by_figures.high - answer_.price.time), ps(launch.high - launch.value));
      UncertaintyInterval range{.low = low_end(other.time, lows), .high = other.time + static_cast<Time>(above)};
      range = with_model_error(std::move(range), other.time, collective_error(other.era));
      other.low = range.low, other.high = range.high;
      answer_.launches.push_back(std::move(other));
    }
  }

  // Collects the rivals that may be as fast as the chosen config. Of a rival, only a lower bound on its time is known.
  // Its interval is taken to be as wide as the chosen one's, in proportion to its time.
  void find_draws() {
    const auto value = [](Time t) { return static_cast<double>(t); };
    const double least = value(answer_.interval.low) / value(answer_.price.time);
    for (const ConfigCost& rival : answer_.choice.others)
      if (value(rival.time) * least < value(answer_.interval.high)) answer_.draws.push_back(rival.config);
  }

  // Prices again with other seeds, and everything else unchanged.
  void draw() {
    if (!answer_.interrupted.empty() || q_.noise.runs == 0) return;
    watch_.begin("pricing with noise");
    PriceOptions noisy = options_;
    answer_.noisy = draw_noise(q_.noise, [&](std::uint64_t seed) {
      noisy.noise = seed;
      return sim::price(*pattern_, machine_, noisy).time;
    });
    answer_.interrupted = answer_.noisy.interrupted;
  }

  // Runs once more, with a trace for phases and the timeline.
  void look() {
    const bool traced = q_.phases || q_.timeline;
    const double moves = moves_gone_through(*pattern_, machine_, options_);
    if (traced && moves > static_cast<double>(most_traced)) {
      answer_.moves = moves;
      return;
    }
    watch_.begin("once more for the timeline");
    const auto run = run_for(*pattern_, machine_, options_, traced);
    if (run->run() == forever) {
      answer_.interrupted = "phases and timeline are missing";
      return;
    }
    for (ResourceId r = 0; r < machine_.resources(); ++r) answer_.carried.push_back(run->carried(r));
    if (traced) answer_.phases = phases_of(*run, machine_, critical_moves(*run), answer_.price.time);
    if (q_.timeline) answer_.seen = timeline_of(*run, machine_, {.ranks = q_.shown});
  }

  const CollectiveQuestion& q_;
  const Machine& machine_;
  ProgressMonitor& watch_;
  Pricer& pricer_;
  PriceOptions options_;
  std::optional<CompiledSchedule> own_;
  const CompiledSchedule* pattern_ = nullptr;
  CollectiveAnswer answer_;
};

}  // namespace

PricingSession::PricingSession(MachineSpec spec, ProgressMonitor* watch)
    : machine_(std::move(spec)), watch_(watch == nullptr ? &nobody_ : watch) {}

Pricer& PricingSession::pricer(const CollectiveQuestion& q) {
  const auto kept = std::ranges::find_if(pricers_, [&](const auto& one) { return is_for(*one, q); });
  if (kept != pricers_.end()) return **kept;
  if (pricers_.size() == most_kept) pricers_.erase(pricers_.begin());
  Pricer::Settings settings = q.settings;
  settings.stopped = [this](Time reached, double done) { return watch_->stopped(reached, done); };
  return *pricers_.emplace_back(std::make_unique<Pricer>(machine_, q.group, std::move(settings)));
}

std::vector<AlgorithmConfig> configs_for(const CollectiveQuestion& q, const Pricer& pricer) {
  if (!q.config) {
    std::vector<AlgorithmConfig> usual = usual_configs(pricer, q.bytes);
    if (usual.empty()) text::refuse("no algorithm serves {} there", schedule::name(q.settings.operation.collective));
    return usual;
  }
  AlgorithmConfig config = *q.config;
  if (config.dims.empty()) config.dims = usual_dims(config.algorithm, pricer.machine(), pricer.group().ranks());
  if (const std::string why = pricer.refusal(config); !why.empty()) text::refuse("{}: {}", text_of(*q.config), why);
  return {config};
}

CollectiveAnswer answer(const CollectiveQuestion& q, PricingSession& on) { return Answering(q, on).run(); }

}  // namespace trellis::sim
