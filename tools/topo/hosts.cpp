#include "tools/topo/hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "launch/hosts.h"
#include "launch/remote.h"

namespace trellis::tools {

std::string topo_of_hosts(const std::vector<std::string>& hosts, const std::string& shell, const std::string& flags,
                          bool json) {
  const std::string command =
      fmt::format("{} topo show host{}", launch::shell_word(launch::path_of_this_program()), flags);
  std::vector<std::pair<std::string, std::string>> said;  // by the hosts' names
  for (const launch::HostSlots& h : launch::hosts_in_list(fmt::format("{}", fmt::join(hosts, ",")))) {
    const std::string text = launch::output_on_host(shell, h.host, command);
    const auto same = std::ranges::find(said, text, [](const auto& one) { return one.second; });
    if (same == said.end() || json)
      said.emplace_back(h.host, text);
    else
      same->first.append(", ").append(h.host);
  }
  if (json) {
    auto all = nlohmann::ordered_json::object();
    for (const auto& [host, text] : said) all[host] = nlohmann::ordered_json::parse(text);
    return all.dump(2) + "\n";
  }
  std::string all;
  for (const auto& [names, text] : said) all.append(all.empty() ? "" : "\n").append(names).append(":\n").append(text);
  return all;
}

}  // namespace trellis::tools
