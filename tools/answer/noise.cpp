#include "tools/answer/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/answer/crossover_chart.h"
#include "tools/program/cli_checks.h"

namespace trellis::tools {

void add_noise_options(CLI::App& app, NoiseOptions& o) {
  app.add_option("--noise", o.runs, "So many times more, with delays of software that are longer by chance")
      ->check(at_least_zero());
  app.add_option("--seed", o.seed, "Of the first of these; the others count on from it")->capture_default_str();
}

void expect_noise(const NoiseOptions& o, const sim::Machine& machine, const std::string& era) {
  if (o.runs > 0 && machine.overheads(era).noise <= 0)
    throw std::invalid_argument(
        fmt::format("--noise: {} has no software that is late by chance: expected a machine with a chip, and "
                    "noise.software above 0",
                    machine.name()));
}

Noisy draw_noise(const NoiseOptions& o, const std::function<sim::Time(std::uint64_t seed)>& time_by) {
  Noisy found;
  for (int i = 0; i < o.runs && found.interrupted.empty(); ++i) {
    const sim::Time time = time_by(o.seed + static_cast<std::uint64_t>(i));
    if (time == sim::forever)
      found.interrupted = fmt::format("{} of {} times with noise are missing", o.runs - i, o.runs);
    else
      found.times.push_back(time);
  }
  std::ranges::sort(found.times);
  return found;
}

sim::Time quantile(const Noisy& noisy, double part) {
  const auto count = static_cast<double>(noisy.times.size());
  return noisy.times[static_cast<std::size_t>(std::max(1.0, std::ceil(part * count))) - 1];
}

std::string noise_words(const Noisy& noisy) {
  return fmt::format("{} to {}, half of {} up to {}, 99% up to {}", sim_time_text(noisy.times.front()),
                     sim_time_text(noisy.times.back()), noisy.times.size(), sim_time_text(quantile(noisy, 0.5)),
                     sim_time_text(quantile(noisy, 0.99)));
}

void put_noise(nlohmann::ordered_json& j, const Noisy& noisy) {
  if (noisy.times.empty()) return;
  j["noise"] = {{"runs", noisy.times.size()},
                {"least_us", sim::in_us(noisy.times.front())},
                {"p50_us", sim::in_us(quantile(noisy, 0.5))},
                {"p99_us", sim::in_us(quantile(noisy, 0.99))},
                {"most_us", sim::in_us(noisy.times.back())}};
}

}  // namespace trellis::tools
