#include "sim/hardware/timeline/timeline.h"

namespace trellis::sim {

std::string_view name(Wait wait) {
  switch (wait) {
    case Wait::none:
      return "none";
    case Wait::order:
      return "order";
    case Wait::semaphore:
      return "semaphore";
    case Wait::port:
      return "port";
    case Wait::data:
      return "data";
    case Wait::peer:
      return "peer";
    case Wait::link:
      return "link";
  }
  return "unknown";
}

std::uint32_t Timeline::track(std::string group, std::string name) {
  tracks.push_back({std::move(group), std::move(name)});
  return static_cast<std::uint32_t>(tracks.size() - 1);
}

std::uint32_t Timeline::counter(std::string group, std::string name) {
  counters.push_back({std::move(group), std::move(name)});
  return static_cast<std::uint32_t>(counters.size() - 1);
}

std::uint32_t Timeline::label_of(std::string_view text) {
  const auto [found, added] = numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(labels_.size()));
  if (added) labels_.emplace_back(text);
  return found->second;
}

}  // namespace trellis::sim
