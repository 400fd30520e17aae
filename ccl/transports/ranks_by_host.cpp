#include "ccl/transports/ranks_by_host.h"

#include <algorithm>
#include <numeric>

namespace trellis::ccl {

RanksByHost shape_of(const std::vector<Rank>& host) {
  const auto ranks = static_cast<Rank>(host.size());
  const auto host_of = [&](Rank r) { return static_cast<std::size_t>(host[static_cast<std::size_t>(r)]); };
  std::vector<Rank> on(host.size());  // by the first rank of a host: the number of its ranks
  for (Rank r = 0; r < ranks; ++r) ++on[host_of(r)];
  const Rank each = on[host_of(0)];
  const bool alike = std::ranges::all_of(on, [&](Rank count) { return count == 0 || count == each; });
  RanksByHost shape{.dims = {ranks}};
  if (alike && each > 1 && each < ranks) shape.dims = {each, ranks / each};
  std::vector<Rank> by_host(host.size());
  std::iota(by_host.begin(), by_host.end(), 0);
  std::ranges::stable_sort(by_host, {}, host_of);
  if (!std::ranges::is_sorted(by_host)) shape.numbering = std::move(by_host);
  return shape;
}

}  // namespace trellis::ccl
