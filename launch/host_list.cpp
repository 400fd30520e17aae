#include <fmt/format.h>

#include <fstream>
#include <set>
#include <stdexcept>

#include "launch/launch_on_hosts.h"
#include "text/number_parsing.h"
#include "text/printable.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::launch {
namespace {

constexpr int most_slots = 65'536;

std::invalid_argument fault(const std::string& where, std::string_view entry) {
  return std::invalid_argument(fmt::format("{}'{}': expected HOST, HOST:SLOTS or HOST slots=SLOTS, with 1 to {} slots",
                                           where, entry, most_slots));
}

// "node0", "node0:4"
HostSlots host_in(std::string_view entry, const std::string& where) {
  HostSlots h{.host = std::string(entry)};
  const std::size_t colon = entry.find(':');
  if (colon != std::string_view::npos && entry.find(':', colon + 1) == std::string_view::npos) {  // more than one: IPv6
    const auto slots = text::number<int>(entry.substr(colon + 1), 1, most_slots);
    if (!slots) throw fault(where, entry);
    h.host = entry.substr(0, colon), h.slots = *slots;
  }
  // A name that begins with a dash would be an option of the remote shell.
  if (h.host.empty() || h.host.front() == '-' || h.host.find_first_of(" \t'\"$`;&|<>()\\") != std::string::npos)
    throw fault(where, entry);
  return h;
}

void expect_hosts(const std::vector<HostSlots>& hosts, const std::string& where) {
  if (hosts.empty()) text::refuse("{}no host", where);
  std::set<std::string> seen;
  for (const HostSlots& h : hosts)
    if (!seen.insert(h.host).second) text::refuse("{}host {} is there twice: expected each once", where, h.host);
}

}  // namespace

std::string bare_host(const std::string& host) { return host.substr(host.find('@') + 1); }

std::vector<HostSlots> hosts_in_list(std::string_view list) {
  std::vector<HostSlots> hosts;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    hosts.push_back(host_in(list.substr(0, end), "--hosts: "));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  expect_hosts(hosts, "--hosts: ");
  return hosts;
}

std::vector<HostSlots> hosts_in_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) text::refuse("{}: the file with hosts can't be read", path);
  std::vector<HostSlots> hosts;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    text::expect_text(fmt::format("{}:{}", path, number), line);
    line = text::trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (const std::size_t slots = line.find("slots="); slots != std::string::npos && slots > 0)
      line = line.substr(0, line.find_last_not_of(" \t", slots - 1) + 1) + ":" + line.substr(slots + 6);
    hosts.push_back(host_in(line, fmt::format("{}:{}: ", path, number)));
  }
  expect_hosts(hosts, path + ": ");
  return hosts;
}

std::vector<HostSlots> hosts_in(std::string_view list, const std::string& path) {
  if (!list.empty() && !path.empty()) throw std::invalid_argument("--hosts and --hosts-file: expected one of them");
  return path.empty() ? hosts_in_list(list) : hosts_in_file(path);
}

int ranks_of_hosts(const std::vector<HostSlots>& hosts, int each) {
  if (each != 0) return each;
  const HostSlots& first = hosts.front();
  for (const HostSlots& h : hosts) {
    if (h.slots == 0) text::refuse("host {} has no slots: expected HOST:SLOTS, or -n", h.host);
    if (h.slots != first.slots)
      text::refuse("host {} has {} slots and {} has {}: expected as many on each", first.host, first.slots, h.host,
                   h.slots);
  }
  return first.slots;
}

}  // namespace trellis::launch
