#include "train/whole/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "schedule/graph/match_exchanges.h"
#include "train/layers/head_share.h"
#include "train/mesh/even_split.h"

namespace trellis::train {
namespace {

// The properties of an exchange, as text, that must be the same on all ranks of a class.
std::string terms(const Exchange& e) {
  std::string text = fmt::format("{} over {}", name(e.kind), name(e.axis));
  if (e.kind == Exchange::Kind::all_reduce) text += fmt::format(" by {} {}", kernels::name(e.reduction), e.factor);
  for (const Transfer& t : e.transfers) text += fmt::format(", {} {}", t.count, kernels::name(t.type));
  return text;
}

std::string compared(const StepProgram& a, const StepProgram& b, std::size_t stage, Rank rank) {
  const std::size_t n = std::min(a.operations.size(), b.operations.size());
  for (std::size_t i = 0; i < n; ++i) {
    const Operation &x = a.operations[i], &y = b.operations[i];
    const bool same = x.kind == y.kind && x.ticket == y.ticket &&
                      (x.kind != Operation::Kind::exchange || terms(x.exchange) == terms(y.exchange));
    if (!same)
      return fmt::format("stage {}, operation {}: {} on the first rank of a class and {} on rank {}", stage, i, x.name,
                         y.name, rank);
  }
  if (a.operations.size() == b.operations.size()) return "";
  return fmt::format("stage {}: {} operations on the first rank of a class and {} on rank {}", stage,
                     a.operations.size(), b.operations.size(), rank);
}

}  // namespace

// Ranks of one class have the same pipeline stage and equal numbers of heads and of vocabulary entries, which tensor
// ranks may have unevenly. Classes are numbered in the order of tensor ranks.
std::size_t class_of(const StepConfig& c, const Mesh& mesh, Rank rank) {
  const Rank tensor = mesh.shape().tensor;
  const HeadCounts heads{c.model.num_attention_heads, c.model.kv_heads()};
  const Place at = mesh.place(rank);
  const auto counts = [&](Rank place) {
    return std::pair(
        head_share(heads, tensor, place, c.wiring).count,
        run_of(c.model.vocab_size, static_cast<std::size_t>(tensor), static_cast<std::size_t>(place)).count);
  };
  std::vector<std::pair<std::size_t, std::size_t>> kinds;
  const auto wanted = counts(at.tensor);
  Rank place = 0;
  for (auto kind = counts(0); kind != wanted; kind = counts(++place))
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  return static_cast<std::size_t>(at.pipeline) + kinds.size() * static_cast<std::size_t>(mesh.shape().pipeline);
}

std::vector<RankStep> classes_of(const StepConfig& config, Rank world, StepPurpose purpose, std::size_t cached,
                                 const PipelineSchedule* order) {
  const Derived derived = derive(config, world);
  const Mesh mesh(derived.mesh, config.wiring);
  std::vector<RankStep> classes;
  for (Rank tensor = 0; tensor < derived.mesh.tensor; ++tensor)
    for (Rank p = 0; p < derived.mesh.pipeline; ++p) {
      const Rank rank = mesh.rank({.pipeline = p, .tensor = tensor});
      if (class_of(config, mesh, rank) == classes.size())
        classes.push_back(lay_out(config, world, rank, purpose, cached, order));
    }
  return classes;
}

std::string check_classes(const StepConfig& config, Rank world, const std::vector<RankStep>& classes,
                          const PipelineSchedule* order, const std::vector<std::size_t>& like) {
  const Mesh& mesh = classes[0].mesh;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const RankStep& first = classes[c];
    Place place{.pipeline = first.place.pipeline,
                .data = mesh.shape().data - 1,
                .context = mesh.shape().context - 1,
                .tensor = mesh.shape().tensor - 1};
    while (class_of(config, mesh, mesh.rank(place)) != c) --place.tensor;
    const std::size_t model = like.empty() ? c : like[c];
    if (place == first.place && model == c) continue;
    const Rank last = mesh.rank(place);
    const RankStep other = lay_out(config, world, last, StepPurpose::train, 0, order);
    const auto stage = static_cast<std::size_t>(place.pipeline);
    if (std::string fault = compared(classes[model].program, other.program, stage, last); !fault.empty()) return fault;
  }
  return "";
}

std::string check_step(const StepConfig& config, Rank world, const std::vector<RankStep>& classes,
                       const schedule::ExecutionGraph& graph) {
  if (std::string fault = schedule::match(graph).fault; !fault.empty()) return fault;
  return check_classes(config, world, classes);
}

}  // namespace trellis::train
