#include "ccl/diagnosis/call_difference.h"

#include <algorithm>
#include <map>

namespace trellis::ccl {
namespace {

using Calls = std::map<std::string, std::vector<Rank>>;  // the calls, and the ranks that made each

std::map<std::uint64_t, Calls> calls_of(const CommunicatorEvidence& m) {
  std::map<std::uint64_t, Calls> calls;
  for (const auto& [rank, d] : m.dumps)
    for (const DumpedEntry& e : d.entries)
      if (e.collective()) calls[e.operation][e.call].push_back(rank);
  const std::vector<InferredRankState> places = m.places();
  for (Rank r = 0; r < m.ranks; ++r) {
    const InferredRankState& p = places[static_cast<std::size_t>(r)];
    if (p.own == nullptr && p.last.collective() && !p.last.call.empty())
      calls[p.last.operation][p.last.call].push_back(r);
  }
  return calls;
}

}  // namespace

std::optional<CallDifference> first_difference(const CommunicatorEvidence& m) {
  for (const auto& [operation, calls] : calls_of(m)) {
    if (calls.size() < 2) continue;
    const auto by_ranks = [](const auto& one) { return one.second.size(); };
    const auto usual = std::ranges::max_element(calls, {}, by_ranks);
    const auto other = std::ranges::find_if(calls, [&](const auto& one) { return one.first != usual->first; });
    return CallDifference{operation, other->first, usual->first, other->second, usual->second};
  }
  return std::nullopt;
}

}  // namespace trellis::ccl
