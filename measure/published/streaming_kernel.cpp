#include "measure/published/streaming_kernel.h"

#include <fmt/format.h>

#include <string>

#include "sim/core/program/emit_instructions.h"
#include "sim/core/program/program_builder.h"
#include "sim/core/run/run.h"

namespace trellis::measure {
namespace {

using namespace sim::core;
using sim::ChipSpec;

RecordAnswer timed(const Record& r, double seconds, std::string by) {
  const auto unit = seconds_of(r.unit);
  return unit ? RecordAnswer{.simulated = seconds / *unit, .by = std::move(by)}
              : RecordAnswer::no(fmt::format("unit '{}'", r.unit));
}

// Simulates loads of 4 KiB into each partition, and scales their time to the record's number of bytes.
std::optional<RecordAnswer> read_all(const Record& r, const ChipSpec& chip) {
  const auto bytes = r.number("bytes");
  if (!r.says("streaming read") || !bytes) return std::nullopt;
  constexpr int tiles = 512;
  constexpr std::int64_t row = 4096;
  ProgramBuilder b("read", chip);
  const TensorOperand from = b.input("from", DType::u8, chip.memory.partitions, row);
  for (int t = 0; t < tiles; ++t) {
    const TensorOperand tile = b.tile(fmt::format("tile{}", t), DType::u8, chip.memory.partitions, row);
    load(b, tile, from);
    b.free(tile);
  }
  const NeuronCoreProgram p = b.finish();
  const RunTotals totals = run(p, chip);
  return timed(r, sim::in_seconds(totals.time) * *bytes / totals.dma_bytes, "loads of 4 KiB a partition");
}

// A cumulative sum along each row. It takes as long as DMA needs to read and write every f32 once.
std::optional<RecordAnswer> scan_rows(const Record& r, const ChipSpec& chip) {
  if (r.id.find(".cumsum.") == r.id.npos) return std::nullopt;
  const std::string shape = r.word("shape");
  const std::size_t by = shape.find('x');
  if (by == shape.npos) return std::nullopt;
  const double elements = std::stod(shape) * std::stod(shape.substr(by + 1));
  return timed(r, 8 * elements / (chip.dma.engine_rate * chip.dma.engines), "shape: DMA's bytes");
}

// How a course's vector addition cuts its vector: partitions of a tile, and elements of each.
struct Cut {
  std::int64_t rows = 0, columns = 0;
};

std::optional<Cut> cut_of(const Record& r) {
  const auto number_after = [&](std::string_view word) -> std::int64_t {
    const std::size_t at = r.id.find(word);
    return at == r.id.npos ? 0 : std::stoll(r.id.substr(at + word.size()));
  };
  if (const std::int64_t rows = number_after(".rowchunk")) return Cut{rows, 1};
  if (const std::int64_t columns = number_after(".free")) return Cut{128, columns};
  return std::nullopt;
}

// z = x + y in f32, a tile after the other.
std::optional<RecordAnswer> add_vectors(const Record& r, const ChipSpec& chip) {
  const std::size_t at = r.id.find(".vector_add.trn2.fp32.n");
  const auto cut = cut_of(r);
  if (at == r.id.npos || !cut) return std::nullopt;
  const std::int64_t n = std::stoll(r.id.substr(at + std::string_view(".vector_add.trn2.fp32.n").size()));
  const std::int64_t tiles = n / (cut->rows * cut->columns);
  ProgramBuilder b("vector_add", chip);
  const TensorOperand x = b.input("x", DType::f32, tiles * cut->rows, cut->columns),
                      y = b.input("y", DType::f32, tiles * cut->rows, cut->columns),
                      z = b.output("z", DType::f32, tiles * cut->rows, cut->columns);
  for (std::int64_t t = 0; t < tiles; ++t) {
    const auto tile = [&](const char* name) {
      return b.tile(fmt::format("{}{}", name, t), DType::f32, cut->rows, cut->columns);
    };
    const TensorOperand xt = tile("x"), yt = tile("y"), zt = tile("z");
    load(b, xt, x.row_range(t * cut->rows, cut->rows));
    load(b, yt, y.row_range(t * cut->rows, cut->rows), Engine::scalar);
    tensor_tensor(b, zt, xt, AluOp::add, yt);
    store(b, z.row_range(t * cut->rows, cut->rows), zt);
    for (const TensorOperand& done : {xt, yt, zt}) b.free(done);
  }
  const NeuronCoreProgram p = b.finish();
  // nki.benchmark and profiles count the kernel's start and end.
  return timed(r, sim::in_seconds(run(p, chip).time + chip.figures().time("kernel.start")),
               fmt::format("{} tiles of {} x {}, and the kernel's start", tiles, cut->rows, cut->columns));
}

}  // namespace

std::optional<RecordAnswer> streamed(const Record& r, const ChipSpec& chip) {
  for (const auto kind : {read_all, scan_rows, add_vectors})
    if (auto answer = kind(r, chip)) return answer;
  return std::nullopt;
}

}  // namespace trellis::measure
