#include "schedule/proof/algorithm_refutation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "schedule/proof/small_form.h"
#include "schedule/proof/verify.h"

namespace trellis::schedule {
namespace {

constexpr Rank most_exact = 32, most_whole = 1024;  // ranks proved as they are; the latter if there is no small form
constexpr std::int32_t most_tried_channels = 2, most_tried_segments = 3;

// Any permutation of a small machine proves as much as one of a large one. Here, each rank sends to the next but one.
void permute_small(Request& small) {
  small.operation.pairs.clear();
  const Rank ranks = small.ranks();
  for (Rank r = 0; r < ranks; ++r) small.operation.pairs.push_back({r, (r + 2) % ranks});
}

Request form_of(const Algorithm& algorithm, const Request& request) {
  Request form = request;
  form.numbering.clear();  // the algorithm sees none, so the proof is the same
  if (request.ranks() > most_exact) {
    form.operation.pairs.clear();
    try {
      form = small_form(algorithm, form);
    } catch (const std::invalid_argument&) {
      if (request.ranks() > most_whole) throw;
    }
    if (request.operation.collective == Collective::permute) permute_small(form);
  }
  Request few = form;
  few.channels = std::min(form.channels, most_tried_channels);
  few.segments = std::min(form.segments, most_tried_segments);
  return refusal(algorithm, few).empty() ? few : form;
}

std::string proved(const Algorithm& algorithm, const Request& form) try {
  const Report report = verify(make(algorithm, form));
  if (report.ok()) return "";
  return fmt::format("{} does {} wrong: on {} {}", algorithm.name, name(form.operation.collective),
                     fmt::join(form.dims, "x"), report.fault->text);
} catch (const std::invalid_argument& error) {
  return fmt::format("{} is not proved to do {}: {}", algorithm.name, name(form.operation.collective), error.what());
}

// Keeps the answers by form: requests of one form share a proof.
class Answers {
 public:
  std::string of(const Algorithm& algorithm, const Request& form) {
    if (!form.operation.pairs.empty()) return proved(algorithm, form);
    Key key{algorithm.name,
            reinterpret_cast<std::uintptr_t>(algorithm.build),
            form.operation.collective,
            form.dims,
            form.operation.root,
            form.operation.peer,
            form.operation.in_place,
            form.channels,
            form.segments,
            form.levels,
            form.order};
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = known_.find(key); found != known_.end()) return found->second;
    }
    std::string answer = proved(algorithm, form);
    const std::lock_guard lock(mutex_);
    return known_.emplace(std::move(key), std::move(answer)).first->second;
  }

 private:
  using Key = std::tuple<std::string, std::uintptr_t, Collective, std::vector<Rank>, Rank, Rank, bool, std::int32_t,
                         std::int32_t, std::vector<std::string>, std::vector<std::int32_t>>;
  std::mutex mutex_;
  std::map<Key, std::string> known_;
};

}  // namespace

std::string refutation(const Algorithm& algorithm, const Request& request) {
  static Answers answers;
  try {
    return answers.of(algorithm, form_of(algorithm, request));
  } catch (const std::invalid_argument& error) {
    return fmt::format("{} is not proved to do {}: {}", algorithm.name, name(request.operation.collective),
                       error.what());
  }
}

}  // namespace trellis::schedule
