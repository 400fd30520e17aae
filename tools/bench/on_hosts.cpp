#include "tools/bench/on_hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/host_machine.h"
#include "launch/launch_on_hosts.h"
#include "text/refuse.h"
#include "tools/program/raw_arguments.h"

namespace trellis::tools {
namespace {

using launch::HostSlots;

int ranks_of_each(const BenchOptions& o, const std::vector<HostSlots>& hosts) {
  const int count = static_cast<int>(hosts.size()), all = o.ranks;
  if (all % count != 0) text::refuse("{} ranks on {} hosts: expected as many on each", all, count);
  if (all == 0 && hosts.front().slots == 0)
    return static_cast<int>(launch::usable_cores(launch::host_machine().whole).size());
  return launch::ranks_of_hosts(hosts, all / count);
}

// The ranks' command line: all words but the options about hosts.
std::vector<std::string> words_for_ranks(const BenchOptions& o) {
  const std::vector<std::string> typed = typed_words();
  std::vector<std::string> kept;
  for (std::size_t i = 1; i < typed.size(); ++i) {
    const std::string name = typed[i].substr(0, typed[i].find('='));
    const bool attached = typed[i].starts_with("-s") && typed[i].size() > 2;  // -snode0,node1
    const bool list = name == "--hosts" || name == "-s" || attached;
    const bool one = name == "--hosts-file" || name == "--rsh";
    if (!list && !one) kept.push_back(typed[i]);
    if ((!list && !one) || name != typed[i]) continue;
    for (bool more = true; more && i + 1 < typed.size() && (one || !typed[i + 1].starts_with('-')); more = list) {
      if (list && typed[i + 1] == o.op) break;
      ++i;
    }
  }
  return kept;
}

}  // namespace

int bench_on_hosts(BenchOptions o) {
  find_op_behind_flags(o);
  launch::HostsLaunchOptions job{.hosts = launch::hosts_in(fmt::format("{}", fmt::join(o.hosts, ",")), o.hosts_file),
                                 .shell = o.shell};
  job.job.program = words_for_ranks(o);
  job.job.program.insert(job.job.program.begin(), launch::path_of_this_program());
  job.job.ranks = ranks_of_each(o, job.hosts);
  job.job.raw = true;
  return launch::launch_on_hosts(std::move(job));
}

}  // namespace trellis::tools
