#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "measure/published/record.h"
#include "sim/core/program/emit_instructions.h"
#include "sim/core/program/program_builder.h"
#include "sim/core/run/instruction_cost.h"
#include "sim/core/run/run.h"

// Records of DMA. Bandwidths are mostly simulated, by programs that only transfer; the latencies of a transfer's single
// steps are mostly read or added up from the chip's figures (ChipSpec).
namespace trellis::measure {
namespace {

using namespace sim::core;
using sim::ChipSpec;
using sim::Time;

// Bytes a second of `transfers` loads or stores, each with so many rows and bytes a row.
double copy_rate(const ChipSpec& chip, std::int64_t rows, std::int64_t row_bytes, int transfers, bool stores) {
  ProgramBuilder b(stores ? "stores" : "loads", chip);
  const TensorOperand hbm =
      stores ? b.output("to", DType::u8, rows, row_bytes) : b.input("from", DType::u8, rows, row_bytes);
  const TensorOperand kept = b.tile("kept", DType::u8, rows, row_bytes);
  if (stores) fill(b, kept, 1);
  for (int t = 0; t < transfers; ++t) {
    if (stores) {
      store(b, hbm, kept);
      continue;
    }
    const TensorOperand tile = b.tile(fmt::format("tile{}", t), DType::u8, rows, row_bytes);
    load(b, tile, hbm);
    b.free(tile);
  }
  const NeuronCoreProgram p = b.finish();
  const RunTotals totals = run(p, chip);
  return totals.dma_bytes / sim::in_seconds(totals.time);
}

double load_rate(const ChipSpec& chip, std::int64_t rows, std::int64_t row_bytes, int transfers) {
  return copy_rate(chip, rows, row_bytes, transfers, false);
}

// The busiest DMA engine's time for a load of so many rows, each of which goes to another partition.
Time engine_time(const ChipSpec& chip, std::int64_t rows, std::int64_t row_bytes) {
  ProgramBuilder b("one", chip);
  load(b, b.tile("tile", DType::u8, rows, row_bytes), b.input("from", DType::u8, rows, row_bytes));
  const NeuronCoreProgram p = b.finish();
  const DmaWork work = dma_work(BoundInstruction(p, p.instructions.front()), chip);
  return std::ranges::max(work.shares, {}, &DmaEngineShare::time).time;
}

RecordAnswer timed(const Record& r, Time t, std::string by) {
  const auto value = time_in(r.unit, t);
  return value ? RecordAnswer{.simulated = value, .by = std::move(by)}
               : RecordAnswer::no(fmt::format("'{}' is no unit of time", r.unit));
}

RecordAnswer rate(const Record& r, double bytes_per_second, std::string by) {
  if (r.unit == "GB/s") return {.simulated = bytes_per_second * 1e-9, .by = std::move(by)};
  if (r.unit == "GiB/s") return {.simulated = bytes_per_second / (1 << 30), .by = std::move(by)};
  if (r.unit == "B/ns") return {.simulated = bytes_per_second * 1e-9, .by = std::move(by)};
  return RecordAnswer::no(fmt::format("'{}' is no unit of bandwidth", r.unit));
}

constexpr std::int64_t plateau_bytes = 32768;  // of a partition

std::optional<RecordAnswer> bandwidth(const Record& r, const ChipSpec& chip) {
  const int transfers = 64;
  if (r.says("throughput relative") && r.number("bytes_per_partition")) {
    const std::int64_t rows = r.count("partitions").value_or(128), bytes = *r.count("bytes_per_partition");
    const double whole = load_rate(chip, rows, plateau_bytes, transfers);
    return RecordAnswer{.simulated = load_rate(chip, rows, bytes, 16 * transfers) / whole,
                        .by = fmt::format("loads of {} bytes a partition", bytes)};
  }
  if (r.says("rate of one core by row width") || r.says("load rate of one core")) {
    if (r.id.find("xla") != r.id.npos) return RecordAnswer::no("the compiler chose how it loads");
    if (r.word("consumer").find("t*t") != std::string::npos)
      return RecordAnswer::no("the consumer's Vector work is the limit");
    const auto wide = r.count("free_elements");
    if (!wide) return RecordAnswer::no("the width isn't given");
    const bool stores = r.says("store");
    return rate(r, copy_rate(chip, chip.memory.partitions, *wide * 2, 8 * transfers, stores),
                fmt::format("{} of {} bytes a partition", stores ? "stores" : "loads", *wide * 2));
  }
  if (r.says("HBM read bandwidth, one NeuronCore"))
    return rate(r, copy_rate(chip, chip.memory.partitions, 4096, 8 * transfers, false), "loads of 4 KiB a partition");
  if (r.says("bandwidth of one DMA engine"))
    return rate(r, static_cast<double>(plateau_bytes) * 2 / sim::in_seconds(engine_time(chip, 1, 2 * plateau_bytes)),
                "a descriptor of 64 KiB");
  if (r.says("bandwidth of one NeuronCore"))
    return rate(r, load_rate(chip, chip.memory.partitions, plateau_bytes, transfers), "loads of 32 KiB a partition");
  if (r.says("achieved HBM"))
    return rate(r, load_rate(chip, chip.memory.partitions, 8192, transfers), "DMA at work alone");
  if (r.says("transpose throughput"))
    return RecordAnswer{.simulated = r.says("SBUF to SBUF") ? chip.dma.transpose_sbuf : chip.dma.transpose_hbm,
                        .by = "figure dma.transpose"};
  if (r.says("accumulate-DMA") || r.says("read-add-write"))
    return RecordAnswer{.simulated = chip.dma.compute_factor, .by = "figure dma.compute.factor"};
  return std::nullopt;
}

std::optional<RecordAnswer> steps(const Record& r, const ChipSpec& chip) {
  const sim::DmaSpec& d = chip.dma;
  if (r.says("semaphore-ready to DMA start"))
    return timed(r, d.done + chip.semaphore_latency + d.trigger_hardware + d.start_hardware,
                 "a DMA's end to the next one's first byte");
  if (r.says("spread of start")) return timed(r, d.stagger, "figure dma.stagger");
  if (r.says("completion semaphore"))
    return RecordAnswer::no("an instruction's 16 increments are one change of the semaphore here");
  if (r.says("end of DMA to start of the dependent"))
    return timed(r, d.done + chip.semaphore_latency, "figures dma.done and semaphore.latency");
  if (r.says("instruction end to start of")) return timed(r, chip.semaphore_latency, "figure semaphore.latency");
  if (r.says("trigger instruction on GpSimd")) return timed(r, d.trigger_software, "figure dma.trigger.software");
  if (r.says("duration of the DMA trigger")) return timed(r, d.trigger_hardware, "figure dma.trigger");
  if (r.says("to last engine complete")) {
    const std::int64_t bytes = r.count("bytes_per_engine").value_or(2048);
    const Time moved = engine_time(chip, 8, std::max<std::int64_t>(bytes / 8, 1));
    return timed(r, d.trigger_software + d.start_software + d.stagger + moved, "trigger, start, stagger and bytes");
  }
  if (r.says("trigger to first data")) return timed(r, d.trigger_software + d.start_software, "trigger and start");
  if (r.says("trigger instruction on the Sync engine to first"))
    return timed(r, d.trigger_hardware + d.start_hardware, "trigger and start");
  if (r.says("DGE cost per DMA instruction")) return timed(r, d.generate, "figure dma.generate");
  if (r.says("element transfer")) return timed(r, d.piece, "figure dma.piece");
  if (r.says("transposing DMA")) return RecordAnswer::no("it does not say how much was transposed");
  return std::nullopt;
}

std::optional<RecordAnswer> dma(const Record& r, const std::vector<Record>&) {
  if (r.kind() != "dma" && r.kind() != "hbm" && r.id != "pe.throttle.ramp") return std::nullopt;
  const auto chip = chip_of(r);
  if (!chip) return RecordAnswer::no(fmt::format("unknown generation '{}'", r.generation));
  if (r.id == "pe.throttle.ramp") return timed(r, chip->tensor.ramp, "figure tensor.ramp");
  if (auto found = bandwidth(r, *chip)) {
    found->kind = "dma";  // records of HBM share the errors of DMA
    return found;
  }
  if (auto found = steps(r, *chip)) return found;
  if (const auto bytes = r.count("bytes"); bytes && *bytes >= 1) {
    const std::int64_t n = *bytes;
    const bool spread = r.says("per-engine") || r.says("partitions");
    return timed(r, spread ? engine_time(*chip, 8, std::max<std::int64_t>(n / 8, 1)) : engine_time(*chip, 1, n),
                 fmt::format("{} bytes on one engine", n));
  }
  return RecordAnswer::no("no model for what it measures");
}

const RegisteredRecordModel registered("dma", dma);

}  // namespace
}  // namespace trellis::measure
