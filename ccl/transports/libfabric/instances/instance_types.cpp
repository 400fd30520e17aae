#include "ccl/transports/libfabric/instances/instance_types.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "device/visible_cores.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::ccl::libfabric {
namespace {

bool fits(std::string_view pattern, std::string_view text) {
  return pattern.ends_with('*') ? text.starts_with(pattern.substr(0, pattern.size() - 1)) : text == pattern;
}

bool has(const std::vector<int>& all, int one) { return std::ranges::find(all, one) != all.end(); }

int number(std::string_view text) {
  if (const auto value = text::number<int>(text, 0)) return *value;
  text::refuse("'{}': expected a number", text);
}

std::vector<int> numbers(std::string_view text) {
  std::vector<int> all;
  for (const std::string_view each : text::split(text, ',')) all.push_back(number(each));
  return all;
}

void read_line(const std::vector<std::string>& words, std::vector<InstanceType>& all) {
  if (words.front() == "instance" && words.size() > 1) {
    all.push_back({.names = {words.begin() + 1, words.end()}, .nics = {}});
    return;
  }
  if (all.empty()) throw std::invalid_argument("expected instance NAME first");
  InstanceType& one = all.back();
  if (words.front() == "chips" && words.size() == 2) {
    one.chips = number(words[1]);
  } else if (words.front() == "cores" && words.size() == 3) {
    one.cores_of_chip = number(words[1]);
    one.usual_logical = number(words[2]);
  } else if (words.front() == "nic" && (words.size() == 3 || (words.size() == 5 && words[3] == "near"))) {
    one.nics.push_back({words[1], numbers(words[2]), words.size() == 5 ? numbers(words[4]) : std::vector<int>()});
    for (const auto* const chips : {&one.nics.back().own, &one.nics.back().near})
      for (const int c : *chips)
        if (c >= one.chips) text::refuse("chip {}: expected one of {}", c, one.chips);
  } else {
    throw std::invalid_argument("expected chips N, cores N L, or nic BUS CHIPS [near CHIPS]");
  }
}

std::string known_names() {
  std::string text;
  for (const InstanceType& i : instances())
    for (const std::string& name : i.names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

int InstanceType::distance(std::string_view bus, int chip) const {
  int least = 2;
  for (const Nic& n : nics)
    if (fits(n.bus, bus)) least = std::min(least, has(n.own, chip) ? 0 : has(n.near, chip) ? 1 : 2);
  return least;
}

std::pair<std::size_t, std::size_t> InstanceType::turn(std::string_view bus, int chip) const {
  for (const Nic& n : nics)
    if (fits(n.bus, bus) && has(n.own, chip))
      return {static_cast<std::size_t>(std::ranges::find(n.own, chip) - n.own.begin()), n.own.size()};
  return {0, 1};
}

std::vector<InstanceType> read_instances(std::string_view text) {
  std::vector<InstanceType> all;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    std::string_view one = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    one = one.substr(0, one.find_first_of("#|"));
    std::istringstream stream{std::string(one)};
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    try {
      if (!words.empty()) read_line(words, all);
    } catch (const std::invalid_argument& e) {
      text::refuse("instances, line {}: {}", line, e.what());
    }
  }
  return all;
}

const InstanceType* instance_of(const std::string& setting, const std::string& product) {
  if (setting == "none") return nullptr;
  const std::string& wanted = setting.empty() ? product : setting;
  for (const InstanceType& i : instances())
    if (std::ranges::any_of(i.names, [&](const std::string& name) { return fits(name, wanted); })) return &i;
  if (!setting.empty()) text::refuse("TRELLIS_INSTANCE={}: expected none, or one of {}", setting, known_names());
  return nullptr;
}

std::string product_of_this_host() {
  std::string name;
  std::ifstream("/sys/devices/virtual/dmi/id/product_name") >> name;
  return name;
}

std::vector<int> chips_of_process(const InstanceType& instance, const LocalRank& here) {
  const device::VisibleCoreSettings settings = device::core_settings();
  const int logical =
      device::logical_size(settings, instance.names.front(), instance.usual_logical, instance.cores_of_chip);
  const int of_chip = instance.cores_of_chip / logical, all = instance.chips * of_chip;
  std::vector<int> cores;
  if (!settings.visible.empty() || settings.count.value_or(0) != 0)
    cores = device::visible_cores(settings, all);
  else if (here.ranks > 1)
    for (int c = here.rank * all / here.ranks, end = std::max(c + 1, (here.rank + 1) * all / here.ranks); c < end; ++c)
      cores.push_back(c);
  std::vector<int> chips;
  for (const int core : cores)
    if (!has(chips, core / of_chip)) chips.push_back(core / of_chip);
  return chips;
}

}  // namespace trellis::ccl::libfabric
