#include "sim/cluster/operation/core_program_timer.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/dispatch/build_id.h"
#include "net/sha256.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/run/run.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

std::string name_of(const ChipSpec& chip) {
  return fmt::format("{}-{}", chip.name, net::short_digest(chip.figures().text() + kernels::build_id()));
}

}  // namespace

CoreProgramTimer::CoreProgramTimer(ChipSpec chip, const std::filesystem::path& folder)
    : chip_(std::move(chip)), kept_(folder, name_of(chip_)) {}

// How long the program takes; none if it cannot have that size, for example because a row does not fit into SBUF.
std::optional<Time> CoreProgramTimer::time(const CoreProgram& p, std::uint64_t extent) {
  std::string run = p.name;
  for (const auto& [name, value] : p.parameters) run += fmt::format(" {}={}", name, value);
  run += fmt::format(" {}={}", p.grows, extent);
  if (const auto found = kept_.find(run)) return *found == forever ? std::nullopt : found;
  Time time = forever;
  try {
    const core::ShippedProgram& program = core::shipped_named(p.name);
    core::Arguments arguments(program.parameters);
    for (const auto& [name, value] : p.parameters) arguments.set(name, value);
    arguments.set(p.grows, std::to_string(extent));
    time = core::run(program.build(arguments, chip_), chip_).time;
  } catch (const std::invalid_argument&) {
  }
  ++timed_;
  kept_.add(run, time);
  return time == forever ? std::nullopt : std::optional(time);
}

std::optional<double> CoreProgramTimer::seconds(const CoreProgram& p) {
  const auto whole = time(p, std::min(p.extent, p.most));
  if (!whole) return {};
  double once = in_seconds(*whole);
  if (p.extent > p.most) {
    const auto half = time(p, p.most / 2);
    if (!half) return {};
    once += in_seconds(*whole - *half) * static_cast<double>(p.extent - p.most) / static_cast<double>(p.most / 2);
  }
  return p.times * once;
}

std::optional<OperationTime> CoreProgramTimer::of(const OperationShape& shape, const EngineRates& rates) {
  const OperationModel& kind = operation_kinds().named(shape.kind);
  if (!kind.program) return {};
  const std::lock_guard lock(mutex_);
  const auto [found, fresh] = known_.try_emplace({shape, rates.cores()});
  if (!fresh) return found->second;
  const std::optional<CoreProgram> program = kind.program(shape, rates);
  const std::optional<double> one_core = program ? seconds(*program) : std::nullopt;
  if (!one_core) return {};
  OperationTime time = operation_time(shape, rates);
  const double besides = time.total - operation_time(program->does, rates).total;
  time.total = std::max(0.0, *one_core / rates.cores() + besides);
  time.by_program = true;
  return found->second = time;
}

void CoreProgramTimer::keep() {
  const std::lock_guard lock(mutex_);
  kept_.save();
}

std::size_t CoreProgramTimer::timed() const {
  const std::lock_guard lock(mutex_);
  return timed_;
}

std::string CoreProgramTimer::damage() const {
  const std::lock_guard lock(mutex_);
  return kept_.damage();
}

ChipSpec chip_of(const Machine& machine) {
  const MachineSpec& spec = machine.spec();
  if (spec.chip.empty())
    text::refuse("{} has no chip: expected a machine whose engines are known, as trn1.32xlarge", machine.name());
  const ChipSpec chip = chip_named(spec.chip);
  Figures figures = chip.figures();
  for (const auto& [key, figure] : chip.figures().all())
    if (spec.figures.has(key) && spec.figures.at(key).value != figure.value)
      figures.set(key, spec.figures.at(key).value);
  return ChipSpec(spec.chip, std::move(figures));
}

}  // namespace trellis::sim
