#include "sim/hardware/timeline/timeline.h"

#include "text/words.h"

namespace trellis::sim {

std::string_view name(WaitReason wait) {
  return text::word_of(wait, {"none", "order", "semaphore", "port", "data", "peer", "link"});
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
