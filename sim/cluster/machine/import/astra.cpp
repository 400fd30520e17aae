#include <map>

#include "sim/cluster/machine/import/import.h"
#include "sim/cluster/machine/import/import_parsing.h"
#include "text/words.h"

namespace trellis::sim {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

// "key: [ a, b ]", each on one line. A single value is a list of one.
std::map<std::string_view, std::vector<std::string_view>> keys_of(std::string_view name, std::string_view text) {
  std::map<std::string_view, std::vector<std::string_view>> keys;
  int number = 0;
  for (std::string_view line : import_list(text, '\n')) {
    ++number;
    line = text::trimmed(line.substr(0, line.find('#')));
    if (line.empty() || line == "---") continue;
    const std::size_t colon = line.find(':');
    if (colon == line.npos) refuse_import(name, "line {}: '{}': expected KEY: [ VALUES ]", number, line);
    const std::string_view key = text::trimmed(line.substr(0, colon));
    std::string_view value = text::trimmed(line.substr(colon + 1));
    if (value.starts_with('[')) {
      if (!value.ends_with(']')) refuse_import(name, "line {}: '{}': expected a list that ends in ]", number, value);
      value = value.substr(1, value.size() - 2);
    }
    if (key != "topology" && key != "npus_count" && key != "bandwidth" && key != "latency")
      refuse_import(name, "line {}: '{}': expected topology, npus_count, bandwidth or latency", number, key);
    if (!keys.emplace(key, import_list(value, ',')).second)
      refuse_import(name, "line {}: '{}' a second time", number, key);
  }
  return keys;
}

std::string_view fabric_of(std::string_view name, std::string_view topology) {
  if (topology == "Ring") return "ring";
  if (topology == "FullyConnected") return "full";
  if (topology == "Switch") return "switch";
  refuse_import(name, "topology '{}': expected Ring, FullyConnected or Switch", topology);
}

}  // namespace

// A switch is two links in a row, so it has twice the latency.
MachineSpec import_astra(std::string_view name, std::string_view text) {
  const auto keys = keys_of(name, text);
  for (const char* key : {"topology", "npus_count", "bandwidth", "latency"}) {
    if (!keys.contains(key)) refuse_import(name, "expected a line '{}: [ ... ]'", key);
    if (keys.at(key).size() != keys.at("topology").size())
      refuse_import(name, "{} of {} dimensions, topology of {}", key, keys.at(key).size(), keys.at("topology").size());
  }
  MachineFileBuilder machine(name);
  for (std::size_t i = 0; i < keys.at("topology").size(); ++i) {
    const std::string_view kind = fabric_of(name, keys.at("topology")[i]);
    const std::string level = fmt::format("dim{}", i);
    machine.level(kind, level, fmt::format("{}", import_count(name, "npus_count", keys.at("npus_count")[i])));
    machine.rate(level + ".rate", gib * import_number(name, "bandwidth", keys.at("bandwidth")[i]),
                 "the file, in GiB/s");
    const double latency = import_number(name, "latency", keys.at("latency")[i], true);
    machine.latency(level + ".latency", kind == "switch" ? 2 * latency : latency, "the file");
  }
  return machine.read();
}

}  // namespace trellis::sim
