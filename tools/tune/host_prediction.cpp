#include "tools/tune/host_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>

#include "ccl/plan/host/host_algorithm_chooser.h"
#include "ccl/plan/planner.h"
#include "ccl/transports/open.h"
#include "ccl/transports/segment/segment.h"
#include "kernels/dispatch/cpu.h"
#include "measure/bench_names.h"
#include "schedule/collective_traits.h"
#include "tools/program/table.h"

namespace trellis::tools {
namespace {

// Ranks in order on the sockets, with caches of this machine's sizes.
ccl::RankCores places_of(const HostPredictionOptions& asked) {
  const int caches = std::min(asked.caches, static_cast<int>(asked.ranks));
  ccl::RankCores places{.cores = asked.cores,
                        .threads = asked.threads,
                        .l2_bytes = kernels::cpu().l2_bytes,
                        .l3_bytes = kernels::cpu().l3_bytes * static_cast<std::size_t>(caches),
                        .l3_caches = caches};
  for (ccl::Rank r = 0; r < asked.ranks; ++r)
    places.sockets.push_back(static_cast<int>(std::int64_t{r} * asked.sockets / asked.ranks));
  return places;
}

}  // namespace

std::string prediction_text(const HostPredictionOptions& asked) {
  const ccl::RankCores places = places_of(asked);
  const ccl::Config config = ccl::config_from_environment();
  const ccl::TransportCapabilities paths{.lanes = ccl::channel_lanes, .round_bytes = ccl::round_bytes_for(config)};
  const ccl::Planner planner(0, asked.ranks, paths, config, {}, places);
  const ccl::AlgorithmConfig selected = planner.choose(asked.call, false);
  const std::span<const ccl::PredictedTime> chosen_from = planner.predicted(asked.call);
  ccl::HostAlgorithmChooser chooser(asked.ranks, paths,
                                    places);  // for the times, if the planner has none: see chosen_from
  Table table("predictions",
              {left("algorithm"), {"time readable", "s"}, {"time slots", "s"}, {"of the fastest"}, {"selected"}});
  std::set<std::string> seen;
  double fastest = 0;
  for (const ccl::PredictedTime& p : chosen_from.empty() ? std::span(chooser.ranked(asked.call)) : chosen_from) {
    const double both = std::sqrt(p.product());
    if (fastest == 0) fastest = both;
    if (seen.insert(schedule::family_of(p.config)).second || asked.all || p.config == selected)
      table.add({text_of(p.config), p.readable_us * 1e-6, p.hidden_us * 1e-6, both / fastest, p.config == selected});
  }
  if (asked.json) return table.json();
  const std::string of = schedule::carries_data(asked.call.operation.collective)
                             ? fmt::format(" of {}", measure::bytes_text(asked.bytes))
                             : "";
  const auto counted = [](int count, std::string_view one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
  };
  const std::string with = asked.threads == asked.cores ? "" : " with " + counted(asked.threads, "thread");
  const std::string caches = asked.caches == asked.sockets ? "" : ", " + counted(asked.caches, "L3 cache");
  return fmt::format("{}{} on {} ranks, {}{} in {}{}: {}\n{}\n\n{}", schedule::name(asked.call.operation.collective),
                     of, asked.ranks, counted(asked.cores, "core"), with, counted(asked.sockets, "socket"), caches,
                     text_of(selected),
                     !chosen_from.empty() ? "selected by the model of the host"
                                          : "selected by the configuration or the table, which hold on such a machine",
                     table.text());
}

}  // namespace trellis::tools
