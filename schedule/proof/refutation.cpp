#include "schedule/proof/refutation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "schedule/proof/small_form.h"
#include "schedule/proof/verify.h"

namespace trellis::schedule {
namespace {

constexpr Rank most_exact = 32, most_whole = 1024;  // ranks; the latter where there is no small form
constexpr std::int32_t most_tried_channels = 2, most_tried_segments = 3;

// A permutation of a small machine says as much as one of a large machine: each rank sends to the next one but one.
void permute_small(Request& small) {
  small.pairs.clear();
  const Rank ranks = small.ranks();
  for (Rank r = 0; r < ranks; ++r) small.pairs.push_back({r, (r + 2) % ranks});
}

Request form_of(const Algorithm& algorithm, const Request& request) {
  Request form = request;
  form.numbering.clear();  // the algorithm sees none
  if (request.ranks() > most_exact) {
    form.pairs.clear();
    try {
      form = small_form(algorithm, form);
    } catch (const std::invalid_argument&) {
      if (request.ranks() > most_whole) throw;
    }
    if (request.collective == Collective::permute) permute_small(form);
  }
  Request few = form;
  few.channels = std::min(form.channels, most_tried_channels);
  few.segments = std::min(form.segments, most_tried_segments);
  return refusal(algorithm, few).empty() ? few : form;
}

}  // namespace

std::string refutation(const Algorithm& algorithm, const Request& request) {
  try {
    const Request form = form_of(algorithm, request);
    const Report report = verify(make(algorithm, form));
    if (report.ok()) return "";
    return fmt::format("{} does {} wrong: on {} {}", algorithm.name, name(request.collective),
                       fmt::join(form.dims, "x"), report.fault->text);
  } catch (const std::invalid_argument& error) {
    return fmt::format("{} is not proved to do {}: {}", algorithm.name, name(request.collective), error.what());
  }
}

}  // namespace trellis::schedule
