#include "sim/cluster/machine/launch_mode.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "sim/hardware/figures/model_error_range.h"
#include "text/refuse.h"

namespace trellis::sim {

std::string_view launch_of(std::string_view era) {
  const std::size_t dash = era.find('-');
  return dash == era.npos ? launches[0] : era.substr(dash + 1);
}

std::string collective_error(std::string_view era) {
  const std::string_view launch = launch_of(era);
  return launch == launches[0] ? "coll" : fmt::format("coll.{}", launch);
}

bool is_draw(const Machine& machine, std::string_view era, Time one, Time other) {
  if (machine.spec().chip.empty()) return false;
  const ModelErrorRange error = error_range(collective_error(era.empty() ? std::string_view(machine.spec().era) : era));
  const auto [least, most] = std::minmax(one, other);
  return static_cast<double>(most) * error.low <= static_cast<double>(least) * error.high;
}

std::string era_launched(const Machine& machine, std::string_view era, std::string_view launch) {
  if (std::ranges::find(launches, launch) == launches.end())
    text::refuse("launch '{}': expected {}", launch, fmt::join(launches, ", "));
  const std::string_view base = era.empty() ? std::string_view(machine.spec().era) : era;
  std::vector<std::string> eras = machine.eras();
  std::erase_if(eras, [&](const std::string& one) { return launch_of(one) != launch; });
  if (eras.empty())
    text::refuse("--launch {}: {} has no chip, and no software that starts anything", launch, machine.name());
  if (launch_of(base) == launch) return std::string(base);
  if (era.empty()) return eras.back();
  const std::string wanted = fmt::format("{}-{}", base.substr(0, base.find('-')), launch);
  if (base.find('-') != base.npos || std::ranges::find(eras, wanted) == eras.end())
    text::refuse("--launch {} in era {}: nothing is known of that; expected --era {}", launch, era,
                 fmt::join(eras, ", "));
  return wanted;
}

}  // namespace trellis::sim
