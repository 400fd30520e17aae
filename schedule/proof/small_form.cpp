#include "schedule/proof/small_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "text/refuse.h"

namespace trellis::schedule {
namespace {

constexpr Rank usual_ranks = 64, most_ranks_of_form = 1024;

// A smaller length of the same kind: algorithms treat powers of two, other even numbers and odd numbers differently.
Rank smaller(Rank dim, Rank most) {
  const auto power = [](Rank r) { return std::has_single_bit(static_cast<std::uint32_t>(r)); };
  if (dim % 2 == 0 && !power(dim)) most = std::max<Rank>(most, 6);
  if (dim <= most) return dim;
  while (most % 2 != dim % 2 || power(most) != power(dim)) --most;
  return most;
}

// Shortens the dimensions. Each keeps its kind if the machine, with two ranks in each later dimension, then has at most
// `most_ranks` ranks.
std::vector<Rank> shortened(const std::vector<Rank>& dims, Rank most, Rank most_ranks) {
  std::vector<Rank> small;
  Rank ranks = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const Rank later = Rank{1} << std::min<std::size_t>(dims.size() - 1 - i, 10);
    Rank d = std::min<Rank>(dims[i], 2);
    for (const Rank length : {smaller(dims[i], most), std::min<Rank>(dims[i], 4)})
      if (ranks * length * later <= most_ranks) {
        d = length;
        break;
      }
    small.push_back(d), ranks *= d;
  }
  return small;
}

// The rank at the same coordinates of a smaller machine, clamped to its size.
Rank moved(Rank rank, const std::vector<Rank>& dims, const std::vector<Rank>& small) {
  Rank found = 0, stride = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    found += std::min(rank % dims[i], small[i] - 1) * stride;
    rank /= dims[i];
    stride *= small[i];
  }
  return found;
}

}  // namespace

Request small_form(const Algorithm& algorithm, const Request& request) {
  const bool row = request.dims.size() == 1;
  for (const Rank most : {4, 3, 5, 6, 8, 2})
    for (const bool usual : {true, false}) {
      Request small = request;
      small.dims = shortened(request.dims, row ? most * 4 : most, usual ? usual_ranks : most_ranks_of_form);
      const Rank ranks = small.ranks();
      small.operation.root = moved(request.operation.root, request.dims, small.dims);
      small.operation.peer = moved(request.operation.peer, request.dims, small.dims);
      if (request.operation.root != request.operation.peer && small.operation.root == small.operation.peer &&
          request.operation.collective == Collective::send_recv)
        continue;
      for (const Pair& p : small.operation.pairs)
        if (p.source >= ranks || p.target >= ranks)
          text::refuse("the pair {}:{} has no place on a small machine: permute is proved written out only", p.source,
                       p.target);
      if (ranks <= most_ranks_of_form && refusal(algorithm, small).empty()) return small;
    }
  text::refuse("{} serves no small machine of the form {}: it can't be proved there", algorithm.name,
               fmt::join(request.dims, "x"));
}

}  // namespace trellis::schedule
