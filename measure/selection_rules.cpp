#include "measure/selection_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "measure/bench_names.h"
#include "schedule/algorithms/size_range_tuner.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::measure {

std::vector<ccl::SelectionRule> rules_for(schedule::Collective collective, ccl::Rank ranks,
                                          const std::vector<SizeCosts>& sizes) {
  std::vector<ccl::SelectionRule> rules;
  schedule::SizeRangeTuner<CandidateCost> tuner;
  for (const SizeCosts& size : sizes) {
    const CandidateCost* const best = tuner.chosen(size.costs);
    if (tuner.changed()) rules.push_back({collective, ranks, rules.empty() ? 0 : size.bytes, best->config});
  }
  return rules;
}

std::string reason(const ccl::SelectionTable& table, schedule::Collective collective, ccl::Rank ranks,
                   std::uint64_t bytes, kernels::DType type, std::string_view machine, const ccl::Selected& selected) {
  const bool has_rules =
      table.nearest(collective, ranks, machine) != 0 || table.nearest(collective, ranks, ccl::any_machine) != 0;
  const std::string none = fmt::format("the table has no rule for {}", schedule::name(collective));
  if (selected.by_model) {
    const int measured = table.measured_cores(collective, ranks, machine, selected.cores);
    return fmt::format("{}; the model of the host selects (--predict)",
                       has_rules ? fmt::format("its rules were measured where ranks share {} cores", measured) : none);
  }
  if (!has_rules) return none + ": it is the first by name that serves";
  const std::vector<ccl::SelectionRule> rules =
      table.candidates(collective, ranks, bytes, type, machine, selected.cores);
  const auto used =
      std::ranges::find(rules, schedule::algorithm_config_named(selected.algorithm), &ccl::SelectionRule::config);
  if (used == rules.end())
    return fmt::format("no rule of the table for {} can serve this: it is the first by name that does",
                       schedule::name(collective));
  std::string text = fmt::format("the rule '{}'{} begins at {}", text_of(*used),
                                 used->machine == ccl::any_machine ? "" : " of machine " + used->machine,
                                 used->from_bytes == 0 ? "0" : bytes_text(used->from_bytes));
  if (used->ranks != ranks) text += fmt::format(", and {} is the nearest number of ranks that has rules", used->ranks);
  if (const auto passed = used - rules.begin(); passed != 0)  // rules that can't serve
    text += fmt::format("; {} {} before it can't serve this", passed, passed == 1 ? "rule" : "rules");
  return text;
}

std::vector<std::uint64_t> parse_sizes(std::string_view text) {
  constexpr std::size_t most = 1000;
  std::vector<std::uint64_t> sizes;
  for (const std::string_view part : text::split(text, ',')) {
    const std::size_t dots = part.find("..");
    const std::uint64_t first = parse_bytes(part.substr(0, dots));
    const std::uint64_t last = dots == part.npos ? first : parse_bytes(part.substr(dots + 2));
    if (first == 0 || last < first) text::refuse("'{}' in '{}': expected sizes like 8..16MB or 64KB", part, text);
    if (last > most_bytes) text::refuse("'{}' in '{}': expected at most 16T", part, text);
    for (std::uint64_t bytes = first; bytes <= last; bytes *= 2) sizes.push_back(bytes);
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.size() > most) text::refuse("'{}' are more than {} sizes", text, most);
  return sizes;
}

}  // namespace trellis::measure
