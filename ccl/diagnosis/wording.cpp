#include "ccl/diagnosis/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace trellis::ccl {

std::string list_of(std::vector<Rank> ranks) {
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

Wording::Wording(const JobEvidence& job) : job_(job) {
  for (std::size_t c = 1; c < job.communicators.size(); ++c) {
    const CommunicatorEvidence &one = job.communicators[c], &main = job.communicators[main_];
    if (one.parent.empty() && (!main.parent.empty() || one.ranks > main.ranks)) main_ = c;
  }
}

std::string Wording::ranks(const std::vector<CommunicatorRank>& nodes) const {
  std::map<std::size_t, std::vector<Rank>> by_top;
  for (const CommunicatorRank& n : nodes) {
    const CommunicatorRank named = job_.origin(n);
    by_top[named.communicator].push_back(named.rank);
  }
  std::vector<std::string> parts;
  for (const auto& [top, ranks] : by_top)
    parts.push_back(top == main_ ? list_of(ranks) : fmt::format("{} of {}", list_of(ranks), name(top)));
  return fmt::format("{}", fmt::join(parts, " and "));
}

std::string Wording::name(std::size_t c) const {
  const CommunicatorEvidence& m = job_.communicators[c];
  return fmt::format("communicator {} of {} ranks", m.communicator, m.ranks);
}

std::string Wording::where(std::size_t c, const DumpedEntry& e) const {
  const std::string of = job_.communicators.size() > 1 ? fmt::format(" of {}", name(c)) : "";
  if (!e.division.empty()) return fmt::format("a {} {}{}", e.division, after(c, e), of);
  if (e.points) return fmt::format("{} {}{}", e.call, after(c, e), of);
  return fmt::format("operation {}, {}{}", e.operation, e.call, of);
}

std::string Wording::after(std::size_t, const DumpedEntry& last) const {
  return last.operation == 0 ? "before any operation" : fmt::format("after operation {}", last.operation);
}

}  // namespace trellis::ccl
