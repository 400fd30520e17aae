#include "device/visible_cores.h"

#include <fmt/format.h>

#include <set>

#include "device/environment_variable.h"
#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::device {
namespace {

constexpr const char* visible_name = "NEURON_RT_VISIBLE_CORES";
constexpr const char* count_name = "NEURON_RT_NUM_CORES";
constexpr const char* logical_name = "NEURON_LOGICAL_NC_CONFIG";
constexpr const char* older_logical_name = "NEURON_RT_VIRTUAL_CORE_SIZE";

std::optional<int> number(std::string_view text) { return text::number<int>(text, 0); }

std::optional<int> number_of_variable(const char* variable) {
  const std::string text = value_of_variable(variable);
  if (text.empty()) return std::nullopt;
  const auto value = number(text);
  if (!value) text::refuse("{}={}: expected a number from 0 on", variable, text);
  return value;
}

}  // namespace

VisibleCoreSettings core_settings() {
  VisibleCoreSettings s{
      .visible = value_of_variable(visible_name), .count = number_of_variable(count_name), .logical_size = {}};
  s.logical_size = number_of_variable(logical_name);
  if (!s.logical_size) s.logical_size = number_of_variable(older_logical_name);
  return s;
}

std::vector<int> core_list(std::string_view variable, std::string_view text, int cores) {
  const auto refuse = [&](std::string_view part, std::string_view expected) {
    text::refuse("{}={}: {}: expected {}", variable, text, part, expected);
  };
  std::vector<int> out;
  std::set<int> seen;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    rest.remove_prefix(more ? comma + 1 : rest.size());
    const std::size_t dash = part.find('-');
    const auto first = number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number(part.substr(dash + 1));
    if (!first || !last || *last < *first) refuse(part, "a core or a range such as 0-3");
    if (*last >= cores) refuse(part, fmt::format("cores below {}", cores));
    for (int c = *first; c <= *last; ++c)
      if (seen.insert(c).second)
        out.push_back(c);
      else
        refuse(part, fmt::format("core {} once", c));
  }
  return out;
}

std::vector<int> visible_cores(const VisibleCoreSettings& settings, int cores) {
  if (!settings.visible.empty()) return core_list(visible_name, settings.visible, cores);
  const int wanted = settings.count.value_or(0);
  if (wanted > cores) text::refuse("{}={}: the machine has {} cores", count_name, wanted, cores);
  std::vector<int> out;
  for (int c = 0; c < (wanted == 0 ? cores : wanted); ++c) out.push_back(c);
  return out;
}

int logical_size(const VisibleCoreSettings& settings, std::string_view chip, int usual, int physical_cores) {
  const int size = settings.logical_size.value_or(usual);
  if (size < 1 || size > 2 || physical_cores % size != 0 || (size == 2 && usual == 1))
    text::refuse("{}={}: a {} has logical cores of {}", logical_name, size, chip, usual == 1 ? "1" : "1 or 2");
  return size;
}

}  // namespace trellis::device
