#include "ccl/transports/shape.h"

#include <algorithm>

namespace trellis::ccl {

Shape shape_of(const std::vector<Rank>& host) {
  const auto ranks = static_cast<Rank>(host.size());
  const auto each = static_cast<Rank>(std::ranges::count(host, host.front()));
  if (each == 1 || each == ranks || ranks % each != 0) return {{ranks}};
  const Rank hosts = ranks / each;
  bool in_rows = true, by_turns = true;
  for (Rank r = 0; r < ranks; ++r) {
    const Rank first = host[static_cast<std::size_t>(r)];
    in_rows = in_rows && first == r / each * each;
    by_turns = by_turns && first == r % hosts;
  }
  if (in_rows) return {{each, hosts}};
  return by_turns ? Shape{{hosts, each}, {1, 0}} : Shape{{ranks}};
}

}  // namespace trellis::ccl
