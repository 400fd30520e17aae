#include "train/whole/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/plan/match.h"

namespace trellis::train {
namespace {

// What the other ends of an exchange must agree with.
std::string terms(const Exchange& e) {
  std::string text = fmt::format("{} over {}", name(e.kind), name(e.axis));
  if (e.kind == Exchange::Kind::all_reduce) text += fmt::format(" by {} {}", kernels::name(e.reduction), e.factor);
  for (const Transfer& t : e.transfers) text += fmt::format(", {} {}", t.count, kernels::name(t.type));
  return text;
}

std::string compared(const Program& a, const Program& b, std::size_t stage, Rank rank) {
  const std::size_t n = std::min(a.operations.size(), b.operations.size());
  for (std::size_t i = 0; i < n; ++i) {
    const Operation &x = a.operations[i], &y = b.operations[i];
    const bool same = x.kind == y.kind && x.ticket == y.ticket &&
                      (x.kind != Operation::Kind::exchange || terms(x.exchange) == terms(y.exchange));
    if (!same)
      return fmt::format("stage {}, operation {}: {} on its first rank and {} on rank {}", stage, i, x.name, y.name,
                         rank);
  }
  if (a.operations.size() == b.operations.size()) return "";
  return fmt::format("stage {}: {} operations on its first rank and {} on rank {}", stage, a.operations.size(),
                     b.operations.size(), rank);
}

}  // namespace

std::vector<Step> stages_of(const Config& config, Rank world, Purpose purpose) {
  const Derived derived = derive(config, world);
  const Mesh mesh(derived.mesh, config.wiring);
  std::vector<Step> stages;
  for (Rank p = 0; p < derived.mesh.pipeline; ++p)
    stages.push_back(lay_out(config, world, mesh.rank({.pipeline = p}), purpose));
  return stages;
}

std::string check_classes(const Config& config, Rank world, const std::vector<Step>& stages) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const MeshShape& shape = stages[s].mesh.shape();
    if (shape.tensor == 1 && shape.data == 1) continue;
    const Rank corner =
        stages[s].mesh.rank({.pipeline = static_cast<Rank>(s), .data = shape.data - 1, .tensor = shape.tensor - 1});
    const Step other = lay_out(config, world, corner);
    if (std::string fault = compared(stages[s].program, other.program, s, corner); !fault.empty()) return fault;
  }
  return "";
}

std::string check_step(const Config& config, Rank world, const std::vector<Step>& stages, const schedule::Plan& plan) {
  if (std::string fault = schedule::match(plan).fault; !fault.empty()) return fault;
  return check_classes(config, world, stages);
}

}  // namespace trellis::train
