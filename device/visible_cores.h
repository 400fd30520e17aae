// The cores that a process may use, as Neuron's environment variables define them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::device {

// NEURON_RT_VISIBLE_CORES, NEURON_RT_NUM_CORES, NEURON_LOGICAL_NC_CONFIG (or the older NEURON_RT_VIRTUAL_CORE_SIZE).
// A list of visible cores takes precedence over a number of cores.
struct VisibleCoreSettings {
  std::string visible;              // "3", "0-3", "0-3,8,10-11"; empty: all
  std::optional<int> count;         // none, 0: all
  std::optional<int> logical_size;  // physical cores of a logical one; none: the chip's usual
};

VisibleCoreSettings core_settings();  // of the environment; throws invalid_argument, naming the variable

// Throw invalid_argument, naming the variable, the value and what was expected.
std::vector<int> visible_cores(const VisibleCoreSettings&, int cores);
std::vector<int> core_list(std::string_view variable, std::string_view text, int cores);  // "0-3,8", each core once
int logical_size(const VisibleCoreSettings&, std::string_view chip, int usual, int physical_cores);

}  // namespace trellis::device
