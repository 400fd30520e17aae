#include "sim/hardware/chip/chip.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/hardware/figures/embedded_files.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

constexpr std::string_view engine_names[] = {"tensor", "vector", "scalar", "gpsimd", "sync"};

// Limits of the core's model.
constexpr double most_dma_engines = 4096, most_rings = 256, most_partitions = 1024;
constexpr double most_on_chip = 0x1p30, most_hbm = 0x1p50;  // bytes: of a partition, and of a chip

void expect_at_most(std::string_view chip, std::string_view key, double value, double most) {
  if (value > most) text::refuse("{}: {} is {:.17g}: expected at most {:.17g}", chip, key, value, most);
}

// Looks up what sim/cluster/operation and the price of a step will need, so that a chip without it is refused here.
void check_operations(const std::string& name, const Figures& figures) {
  if (figures.bytes("dma.row.full") <= 0) text::refuse("{}: dma.row.full must be above 0", name);
  for (const auto& [key, figure] : figures.all())
    if (key.starts_with("operation.") || key.starts_with("step.")) figures.number(key);
}

}  // namespace

ChipSpec::ChipSpec(std::string chip, Figures figures) : name(std::move(chip)), figures_(std::move(figures)) {
  const Figures& f = figures_;
  generation = f.count("generation");
  cores = f.count("cores");
  logical_cores = f.count("logical.cores");
  semaphore_latency = f.time("semaphore.latency");
  semaphore_instruction = f.time("semaphore.instruction");
  table_load = f.time("scalar.table.load");
  core_barrier = f.time("core.barrier");
  core_move = f.time("core.move.start");
  core_rate = f.rate("core.move.rate");
  vector_gpsimd_share = f.count("vector.gpsimd.share") != 0;
  vector_scalar_share_psum = f.count("vector.scalar.share.psum") != 0;
  read_engines();
  read_tensor();
  read_dma();
  read_memory();
  read_costs();
  f.expect_times(name);
  check_operations(name, figures_);
  f.count("collective.cores");  // looked up here so that it counts as used; machines read it
  f.time("kernel.start");       // likewise; read to time a kernel as nki.benchmark would
  f.time("dma.interval.2024");  // likewise; read to price what older compilers made
  f.expect_all_used(fmt::format("chip {}", name));
}

void ChipSpec::read_engines() {
  for (std::size_t e = 0; e < engine.size(); ++e) {
    const auto key = [&](std::string_view what) { return fmt::format("{}.{}", engine_names[e], what); };
    engine[e] = {.clock = figures_.frequency(key("clock")),
                 .latency = figures_.time(key("latency")),
                 .interval = figures_.cycles(key("interval"))};
    if (engine[e].clock <= 0) text::refuse("{}: {} must be above 0", name, key("clock"));
  }
}

void ChipSpec::read_tensor() {
  const Figures& f = figures_;
  tensor = {.rows = f.count("tensor.rows"),
            .columns = f.count("tensor.columns"),
            .row_cycles_wide = f.cycles("tensor.row.16bit"),
            .row_cycles_f32 = f.cycles("tensor.row.f32"),
            .row_cycles_f8 = f.cycles("tensor.row.f8"),
            .row_cycles_mx = f.cycles("tensor.row.mx"),
            .transpose_f32 = f.cycles("tensor.row.transpose.f32"),
            .load_rows = f.number("tensor.load.rows"),
            .load_rows_f32 = f.number("tensor.load.rows.f32"),
            .passes_f32 = f.count("tensor.passes.f32"),
            .load_exposed = f.cycles("tensor.load.exposed"),
            .moving_most = f.count("tensor.moving.most"),
            .ramp = f.time("tensor.ramp"),
            .ramp_rate = f.number("tensor.ramp.rate"),
            .ramp_least = f.number("tensor.ramp.least")};
  if (tensor.rows < 1 || tensor.columns < 1) text::refuse("{}: tensor.rows and tensor.columns must be above 0", name);
  if (tensor.load_rows <= 0 || tensor.load_rows_f32 <= 0 || tensor.ramp_rate <= 0)
    text::refuse("{}: tensor.load.rows and tensor.ramp.rate must be above 0", name);
}

void ChipSpec::read_dma() {
  const Figures& f = figures_;
  dma = {.engines = f.count("dma.engines"),
         .rings = f.count("dma.rings"),
         .engine_rate = f.rate("dma.engine.rate"),
         .start_hardware = f.time("dma.start"),
         .start_software = f.time("dma.start.software"),
         .trigger_hardware = f.time("dma.trigger"),
         .trigger_software = f.time("dma.trigger.software"),
         .stagger = f.time("dma.stagger"),
         .write_descriptor = f.time("dma.descriptor.write"),
         .descriptor = f.time("dma.descriptor"),
         .piece = f.time("dma.piece"),
         .generate = f.time("dma.generate"),
         .interval = f.time("dma.interval"),
         .prefetch = f.count("dma.prefetch") != 0,
         .packet = f.bytes("dma.packet"),
         .descriptor_most = f.bytes("dma.descriptor.most"),
         .done = f.time("dma.done"),
         .compute_factor = f.number("dma.compute.factor"),
         .transpose_hbm = f.number("dma.transpose.hbm"),
         .transpose_sbuf = f.number("dma.transpose.sbuf")};
  expect_at_most(name, "dma.engines", dma.engines, most_dma_engines);
  expect_at_most(name, "dma.rings", dma.rings, most_rings);
  if (dma.engines < 1 || dma.rings < 1 || dma.engine_rate <= 0 || dma.packet <= 0 || dma.descriptor_most <= 0 ||
      dma.compute_factor <= 0 || dma.transpose_hbm <= 0 || dma.transpose_sbuf <= 0)
    text::refuse("{}: counts, rates and factors of dma must be above 0", name);
}

void ChipSpec::read_memory() {
  const Figures& f = figures_;
  memory = {.partitions = f.count("sbuf.partitions"),
            .sbuf_bytes = f.bytes("sbuf.partition"),
            .psum_bytes = f.bytes("psum.partition"),
            .psum_banks = f.count("psum.banks"),
            .hbm_bytes = f.bytes("hbm.bytes"),
            .hbm_rate = f.rate("hbm.rate"),
            .hbm_stacks = f.count("hbm.stacks")};
  expect_at_most(name, "sbuf.partitions", memory.partitions, most_partitions);
  expect_at_most(name, "sbuf.partition", memory.sbuf_bytes, most_on_chip);
  expect_at_most(name, "psum.partition", memory.psum_bytes, most_on_chip);
  expect_at_most(name, "psum.banks", memory.psum_banks, std::max(memory.psum_bytes, 1.0));
  expect_at_most(name, "hbm.bytes", memory.hbm_bytes, most_hbm);
  if (memory.partitions < 1 || memory.psum_banks < 1 || memory.hbm_rate <= 0)
    text::refuse("{}: partitions, banks and hbm.rate must be above 0", name);
}

// cost.KIND.ENGINE.{element,fast,faster,fixed} = N cycles
void ChipSpec::read_costs() {
  for (const auto& [key, figure] : figures_.all()) {
    if (!key.starts_with("cost.")) continue;
    const std::string_view text = key;
    const std::size_t last = text.rfind('.'), middle = text.rfind('.', last - 1);
    const auto found = middle > 5 ? std::ranges::find(engine_names, text.substr(middle + 1, last - middle - 1))
                                  : std::end(engine_names);
    if (found == std::end(engine_names)) text::refuse("{}: {}; expected cost.KIND.ENGINE.FIELD", name, key);
    CostRow& row = costs_[key.substr(5, middle - 5)][static_cast<std::size_t>(found - std::begin(engine_names))];
    set_field(row, key, text.substr(last + 1), figures_.cycles(key));
  }
  for (auto& [kind, rows] : costs_)
    for (CostRow& row : rows) {
      if (row.fast == 0) row.fast = row.element;
      if (row.faster == 0) row.faster = row.fast;
    }
}

void ChipSpec::set_field(CostRow& row, std::string_view key, std::string_view field, double cycles) const {
  row.there = true;
  if (field == "element")
    row.element = cycles;
  else if (field == "fast")
    row.fast = cycles;
  else if (field == "faster")
    row.faster = cycles;
  else if (field == "fixed")
    row.fixed = cycles;
  else
    text::refuse("{}: {} ends in '{}'; expected element, fast, faster or fixed", name, key, field);
}

CostRow ChipSpec::cost(std::string_view kind, int e) const {
  const auto found = costs_.find(kind);
  return found == costs_.end() ? CostRow{} : found->second[static_cast<std::size_t>(e)];
}

ChipSpec chip_named(std::string_view name) {
  const auto others = [](std::string_view other) { return data_text("chips", other); };
  return ChipSpec(std::string(name), Figures::read(data_text("chips", name), others));
}

std::vector<std::string> chip_names() { return data_names("chips"); }

}  // namespace trellis::sim
