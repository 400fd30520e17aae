#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/core/check/check.h"
#include "sim/core/program/operand_footprint.h"
#include "text/refuse.h"

namespace trellis::sim::core {
namespace {

constexpr std::int64_t most_elements_sbuf = 65'536, most_elements_psum = 4'096;  // of a row
constexpr std::int64_t most_count = 65'535;
constexpr double most_in_all = 0x1p53;  // elements of an operand
constexpr std::int64_t least_stride = std::numeric_limits<std::int16_t>::min(),
                       most_stride = std::numeric_limits<std::int16_t>::max();

// Reports faults of one operand.
struct Complaint {
  std::string_view what;
  template <class... T>
  [[noreturn]] void operator()(fmt::format_string<T...> text, T&&... values) const {
    text::refuse("{}: {}", what, fmt::format(text, std::forward<T>(values)...));
  }
};

void check_shape(const BoundInstruction& call, const View& v, const Complaint& complain) {
  if (v.dims < 1 || v.dims > most_dims) complain("dimensions: {}; expected 1 to {}", v.dims, most_dims);
  if (v.rows < 1) complain("partition count: {}; expected at least 1", v.rows);
  double elements = v.rows;
  for (int d = 0; d < v.dims; ++d) {
    const Dim& dim = v.dim[static_cast<std::size_t>(d)];
    if (dim.count < 1) complain("count: {} of dimension {}; expected at least 1", dim.count, d);
    elements *= dim.count;
    if (call.instruction.kind->dma) continue;  // no limit of 16 bits: descriptors have full addresses
    if (dim.count > most_count) complain("count: {} of dimension {}; expected 16 bits, {}", dim.count, d, most_count);
    if (dim.stride < least_stride || dim.stride > most_stride)
      complain("stride: {} of dimension {}; expected 16 bits, {} to {}", dim.stride, d, least_stride, most_stride);
  }
  if (elements > most_in_all) complain("elements: {} in all; expected at most {}", elements, most_in_all);
}

void check_type(const BoundInstruction& call, const ChipSpec& chip, const View& v, const CoreBuffer& b,
                const Complaint& complain) {
  const bool wide = kernels::size_of(v.type) > 4;
  if (wide && !call.instruction.kind->dma) complain("type: {}; engines compute on at most 32 bits", name(v.type));
  if (v.type == DType::f8e4m3fn && chip.generation < 4 && !call.instruction.kind->dma)
    complain("type: f8e4m3fn; {} has f8e3m4, f8e4m3 and f8e5m2", chip.name);
  const auto size = static_cast<std::int64_t>(kernels::size_of(v.type));
  const std::int64_t first = v.offset + (b.space == MemorySpace::hbm ? 0 : b.offset);
  if (first % size != 0)
    complain("alignment: byte {} for {}; expected a multiple of its {} bytes", first, name(v.type), size);
  if (v.index >= 0 && v.index_scale % size != 0)
    complain("alignment: register {} times {} bytes for {}; expected a multiple of its {} bytes", v.index,
             v.index_scale, name(v.type), size);
}

void check_bytes(const View& v, const CoreBuffer& b, const Complaint& complain) {
  const ByteRange all = all_bytes(v, b.space);
  const auto have = static_cast<double>(b.bytes);
  const std::string_view where = b.space == MemorySpace::hbm ? "" : " in a partition";
  if (v.index >= 0 && all.high - all.low > have)
    complain("outside of its buffer: {} bytes from the first to the last, of {}, which has {}{}", all.high - all.low,
             b.name, b.bytes, where);
  if (all.low < 0 || (all.high > have && v.index < 0))
    complain("outside of its buffer: bytes {} to {} of {}, which has {}{}", all.low, all.high - 1, b.name, b.bytes,
             where);
}

void check_partitions(const BoundInstruction& call, const ChipSpec& chip, const View& v, const CoreBuffer& b,
                      const Complaint& complain) {
  if (const std::int64_t end = std::int64_t{v.row} + v.rows; v.row < 0 || end > b.partitions)
    complain("outside of its buffer: partitions {} to {} of {}, which has {}", v.row, end - 1, b.name, b.partitions);
  const bool exchange = call.instruction.kind->name.starts_with("sendrecv");
  if (b.core != call.instruction.core && !exchange)
    complain("core: {} lies on core {}; the instruction runs on {}", b.name, b.core, call.instruction.core);
  if (call.instruction.kind->dma) return;
  const std::int32_t start = b.partition + v.row;
  const int quarter = chip.memory.partitions / 4;
  const int unit = v.rows > 2 * quarter ? chip.memory.partitions : v.rows > quarter ? 2 * quarter : quarter;
  if (start % unit != 0)
    complain("partition start: {} partitions from {} on; expected a start at a multiple of {}", v.rows, start, unit);
  const std::int64_t most = b.space == MemorySpace::psum ? most_elements_psum : most_elements_sbuf;
  if (v.elements() > most)
    complain("free size: {} elements a partition; expected at most {} in {}", v.elements(), most, name(b.space));
}

void check_space(const BoundInstruction& call, const CoreBuffer& b, const OperandRule& rule,
                 const Complaint& complain) {
  if ((rule.spaces >> static_cast<int>(b.space) & 1) == 0) {
    std::string spaces;
    for (const MemorySpace s : {MemorySpace::sbuf, MemorySpace::psum, MemorySpace::hbm})
      if ((rule.spaces >> static_cast<int>(s) & 1) != 0)
        spaces += fmt::format("{}{}", spaces.empty() ? "" : " or ", name(s));
    complain("space: {} lies in {}; expected {}", b.name, name(b.space), spaces);
  }
  const Instruction& i = call.instruction;
  if (i.engine == Engine::gpsimd && !i.kind->dma && b.space == MemorySpace::psum)
    complain("space: {} lies in psum, which the gpsimd engine does not reach", b.name);
}

void check_bank(const BoundInstruction& call, const ChipSpec& chip, const View& v, const CoreBuffer& b,
                const Complaint& complain) {
  const Instruction& i = call.instruction;
  if (i.engine != Engine::tensor || b.space != MemorySpace::psum || chip.generation >= 4) return;
  const auto bank = static_cast<std::int64_t>(chip.memory.psum_bytes) / chip.memory.psum_banks;
  const ByteRange row = row_bytes(v);
  const std::int64_t first = b.offset + v.offset + static_cast<std::int64_t>(row.low);
  const std::int64_t last = b.offset + v.offset + static_cast<std::int64_t>(row.high) - 1;
  if (first / bank != last / bank)
    complain("PSUM bank: bytes {} to {} of a partition cross from bank {} into {}; expected one bank of {} bytes",
             first, last, first / bank, last / bank, bank);
}

}  // namespace

void check_operand(const BoundInstruction& call, const ChipSpec& chip, const View& v, std::string_view what,
                   const OperandRule& rule) {
  const Complaint complain{what};
  if (v.buffer < 0 || static_cast<std::size_t>(v.buffer) >= call.program.buffers.size())
    complain("buffer: number {} of {}", v.buffer, call.program.buffers.size());
  const CoreBuffer& b = call.buffer(v);
  check_space(call, b, rule, complain);
  check_shape(call, v, complain);
  check_type(call, chip, v, b, complain);
  if (b.space != MemorySpace::hbm) check_partitions(call, chip, v, b, complain);
  check_bytes(v, b, complain);
  check_bank(call, chip, v, b, complain);
}

}  // namespace trellis::sim::core
