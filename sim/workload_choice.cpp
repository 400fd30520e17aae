#include "sim/workload_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace trellis::sim {
namespace {

constexpr Rank most_classes = 4096;  // kinds of rank, a program each
constexpr double most_moves = 20e6;  // that one price goes through; beyond, a candidate is not tried
constexpr std::size_t tuned = 3;     // the best ones, tried with several channels

std::string in_words(const Candidate& c) {
  return c.request.channels > 1 ? fmt::format("{}, {} channels", c.algorithm->name, c.request.channels)
                                : c.algorithm->name;
}

// Two ranks need no shape.
std::vector<Candidate> for_two() {
  std::vector<Candidate> all;
  for (const auto& [name, algorithm] : schedule::algorithms())
    all.push_back({&algorithm, {.collective = schedule::Collective::send_recv, .dims = {2}, .peer = 1}});
  return all;
}

}  // namespace

std::vector<Candidate> Choices::serving(const Part& part, Rank ranks, const std::string& only) const {
  if (!only.empty()) schedule::algorithm_named(only);
  const bool two = part.collective == schedule::Collective::send_recv;
  std::vector<Candidate> all = two ? for_two() : candidates(part.collective, machine_, ranks);
  std::erase_if(all, [&](Candidate& c) {
    if (!two) c.request.root = part.root;
    if (!schedule::refusal(*c.algorithm, c.request).empty()) return true;
    if (!only.empty())
      return c.algorithm->name != only || (!two && c.request.dims != usual_dims(only, machine_, ranks));
    return schedule::symmetry_of(*c.algorithm, c.request).classes() > most_classes;
  });
  if (all.empty())
    throw std::invalid_argument(fmt::format("{}: no algorithm{} serves {} among {}", part.name,
                                            only.empty() ? "" : " called " + only, name(part.collective), ranks));
  return all;
}

Chosen Choices::priced(const Candidate& c, const PriceOptions& options, bool only) const {
  Chosen chosen{.words = in_words(c), .pattern = nullptr, .alone = forever};
  const auto pattern = std::make_shared<const Pattern>(pattern_for(*c.algorithm, c.request, options));
  if (!only && moves_gone_through(*pattern, machine_, options) > most_moves) return chosen;
  chosen.chunk_bytes = pattern->sized() ? options.element : 0;
  chosen.alone = price(*pattern, machine_, options).time;
  chosen.pattern = pattern;
  return chosen;
}

Chosen Choices::chosen(const Part& part, const std::vector<Rank>& members) const {
  const auto ranks = static_cast<Rank>(members.size());
  PriceOptions options{.bytes = part.bytes, .element = options_.element, .era = options_.era};
  options.packets = options_.packets;
  if (ranks != machine_.ranks()) options.members = members;
  if (part.schedule) {
    if (part.schedule->task.ranks != ranks)
      throw std::invalid_argument(
          fmt::format("{}: a schedule for {} ranks among {}", part.name, part.schedule->task.ranks, ranks));
    Chosen given{.words = "the schedule given", .pattern = std::make_shared<const Pattern>(*part.schedule)};
    given.alone = price(*given.pattern, machine_, options).time;
    return given;
  }
  const std::string& only = part.algorithm.empty() ? options_.algorithm : part.algorithm;
  const std::vector<Candidate> all = serving(part, ranks, only);
  std::vector<std::pair<Chosen, const Candidate*>> ranked;
  for (const Candidate& c : all)
    if (c.request.channels == 1 && c.request.segments == 1) ranked.emplace_back(priced(c, options, !only.empty()), &c);
  const auto sort = [&] { std::ranges::stable_sort(ranked, {}, [](const auto& each) { return each.first.alone; }); };
  sort();
  if (ranked.size() > tuned) ranked.resize(tuned);
  const auto best = ranked;
  for (const Candidate& c : all)
    for (const auto& [one, like] : best)
      if (c.request.channels > 1 && c.algorithm == like->algorithm && c.request.dims == like->request.dims &&
          task_of(*c.algorithm, c.request) != task_of(*like->algorithm, like->request))
        ranked.emplace_back(priced(c, options, !only.empty()), &c);
  if (ranked.empty())
    for (const Candidate& c : all) ranked.emplace_back(priced(c, options, !only.empty()), &c);
  sort();
  if (ranked.front().first.pattern == nullptr)
    throw std::invalid_argument(fmt::format("{}: {} among {} is too much to try every algorithm: name one", part.name,
                                            name(part.collective), ranks));
  return ranked.front().first;
}

// On a machine without defects groups that lie alike cost about the same: as far apart, and as far from an aligned one.
const Chosen& Choices::choose(const Part& part, const std::vector<Rank>& members) {
  std::vector<Rank> place = members;
  if (machine_.spec().defects.empty()) {
    const Rank first = members[0], size = static_cast<Rank>(members.size());
    for (Rank& r : place) r -= first - first % size;
  }
  Key key{part.collective, part.bytes, part.root, part.peer, part.algorithm, part.schedule.get(), std::move(place)};
  auto found = chosen_.find(key);
  if (found == chosen_.end()) found = chosen_.emplace(std::move(key), chosen(part, members)).first;
  return found->second;
}

}  // namespace trellis::sim
