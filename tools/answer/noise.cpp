#include "tools/answer/noise.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/answer/crossover_chart.h"
#include "tools/program/cli_checks.h"
#include "tools/program/provenance.h"

namespace trellis::tools {

void add_noise_options(CLI::App& app, sim::NoiseOptions& o) {
  auto* const noise =
      app.add_option("--noise", o.runs, "Repeat N times with random software delays")->check(at_least_zero());
  app.add_option("--seed", o.seed, "Seed of the first repetition; each further one adds 1")
      ->capture_default_str()
      ->needs(noise);
}

void note_seed(const sim::NoiseOptions& o) {
  if (o.runs > 0) note_origin("seed", std::to_string(o.seed));
}

std::string noise_words(const sim::NoisyTimes& noisy) {
  return fmt::format("{} to {}, half of {} up to {}, 99% up to {}", sim_time_text(noisy.times.front()),
                     sim_time_text(noisy.times.back()), noisy.times.size(), sim_time_text(quantile(noisy, 0.5)),
                     sim_time_text(quantile(noisy, 0.99)));
}

void put_noise(nlohmann::ordered_json& j, const sim::NoisyTimes& noisy) {
  if (noisy.times.empty()) return;
  j["noise"] = {{"runs", noisy.times.size()},
                {"least_us", sim::in_us(noisy.times.front())},
                {"p50_us", sim::in_us(quantile(noisy, 0.5))},
                {"p99_us", sim::in_us(quantile(noisy, 0.99))},
                {"most_us", sim::in_us(noisy.times.back())}};
}

}  // namespace trellis::tools
