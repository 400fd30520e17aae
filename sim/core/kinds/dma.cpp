// Kinds of the DMA engines: copies with casts, transposes, sums.
#include <vector>

#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {
namespace {

const std::vector<Engine> triggers = {Engine::sync, Engine::scalar, Engine::gpsimd};

std::int64_t all(const View& v) { return v.rows * v.elements(); }

void expect_same_count(const BoundInstruction& call, std::string_view operand, const View& v) {
  if (all(v) != all(call.out()))
    refuse(call, "{} has {} elements in all and out {}; expected as many", operand, all(v), all(call.out()));
}

void check_copy(const BoundInstruction& call) {
  expect_same_count(call, "source", call.in());
  if (call.outputs.size() == 2) expect_same_count(call, "second out", call.out(1));
}

// Copies all elements in row-major order, even if the two sides cut them into rows differently.
void copy_all(const BoundInstruction& call, CoreMemory& memory, const View& in, const View& out) {
  const auto read = static_cast<std::size_t>(in.elements()), written = static_cast<std::size_t>(out.elements());
  if (in.type == out.type) {
    const std::size_t size = kernels::size_of(in.type);
    std::vector<std::byte> bytes(static_cast<std::size_t>(all(in)) * size);
    for (std::int64_t r = 0; r < in.rows; ++r)
      memory.read_bytes(in, r, bytes.data() + static_cast<std::size_t>(r) * read * size);
    for (std::int64_t r = 0; r < out.rows; ++r)
      memory.write_bytes(out, r, bytes.data() + static_cast<std::size_t>(r) * written * size);
    return;
  }
  std::vector<float> numbers(static_cast<std::size_t>(all(in)));
  for (std::int64_t r = 0; r < in.rows; ++r) memory.read(in, r, numbers.data() + static_cast<std::size_t>(r) * read);
  OutputRows sink(call, memory, out);
  for (std::int64_t r = 0; r < out.rows; ++r) sink.store(r, numbers.data() + static_cast<std::size_t>(r) * written);
}

void copy(const BoundInstruction& call, CoreMemory& memory) {
  for (const View& out : call.outputs)
    if (out.rows == call.in().rows && out.elements() == call.in().elements())
      copy_rows(call, memory, call.in(), out);
    else
      copy_all(call, memory, call.in(), out);
}

void check_transpose(const BoundInstruction& call) {
  const View &in = call.in(), &out = call.out();
  if (in.type != out.type)
    refuse(call, "source is {} and out {}; a transpose keeps the type", name(in.type), name(out.type));
  const std::size_t size = kernels::size_of(in.type);
  if (size != 2 && size != 4) refuse(call, "{} has {} bytes; expected 2 or 4", name(in.type), size);
  expect_rows(call, "out", out, in.elements());
  expect_elements(call, "out", out, in.rows);
}

void check_compute(const BoundInstruction& call) {
  for (const View& v : call.inputs) {
    expect_rows(call, "source", v, call.out().rows);
    expect_elements(call, "source", v, call.out().elements());
  }
  const AluOp op = reduction_of(call, Key::op, AluOp::add);
  if (op != AluOp::add && op != AluOp::max && op != AluOp::min)
    refuse(call, "op is {}; expected add, max or min", name(op));
}

// As kernels::reduce: the sources, each times its factor, are added in order, in f32, and rounded once.
void compute(const BoundInstruction& call, CoreMemory& memory) {
  std::vector<InputRows> sources;
  sources.reserve(call.inputs.size());
  for (const View& v : call.inputs) sources.emplace_back(memory, v);
  OutputRows out(call, memory, call.out());
  const std::size_t n = out.elements();
  const AluOp op = reduction_of(call, Key::op, AluOp::add);
  const auto factor = static_cast<float>(call.number(Key::scale, 1));
  std::vector<float> sum(n), term(n);
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    bool first = true;
    for (InputRows& source : sources) {
      const float* from = source.row(r);
      if (factor != 1) {
        arithmetic(AluOp::multiply, {from}, {&factor, true}, term.data(), n);
        from = term.data();
      }
      if (first)
        sum.assign(from, from + n);
      else {
        arithmetic(op, {sum.data()}, {from}, out.row(), n);
        std::copy_n(out.row(), n, sum.data());
      }
      first = false;
    }
    out.store(r, sum.data());
  }
}

std::vector<OperandRule> sources() {
  std::vector<OperandRule> all = {{"source0", false, in_sbuf | in_hbm}};
  static constexpr std::string_view names[] = {"source1",  "source2",  "source3",  "source4",  "source5",
                                               "source6",  "source7",  "source8",  "source9",  "source10",
                                               "source11", "source12", "source13", "source14", "source15"};
  for (const std::string_view name : names) all.push_back({name, true, in_sbuf | in_hbm});
  return all;
}

const RegisteredInstruction kinds_of_dma[] = {
    RegisteredInstruction({.name = "dma_copy",
                           .summary = "out = source, cast through f32 where the types differ; with two outputs, both",
                           .engines = triggers,
                           .outputs = {{"out", false, in_sbuf | in_hbm}, {"second out", true, in_sbuf | in_hbm}},
                           .inputs = {{"source", false, in_sbuf | in_hbm}},
                           .keys = with_rounding(),
                           .dma = true,
                           .check = check_copy,
                           .run = copy}),
    RegisteredInstruction({.name = "dma_transpose",
                           .summary = "rows and elements change places",
                           .engines = triggers,
                           .outputs = {{"out", false, in_sbuf | in_hbm}},
                           .inputs = {{"source", false, in_sbuf | in_hbm}},
                           .dma = true,
                           .check = check_transpose,
                           .run = transpose_rows}),
    RegisteredInstruction(
        {.name = "dma_compute",
         .summary = "out = source0 op source1 op ... (add where absent), each times scale first, in f32",
         .engines = triggers,
         .outputs = {{"out", false, in_sbuf | in_hbm}},
         .inputs = sources(),
         .keys = with_rounding({{Key::op}, {Key::scale}}),
         .dma = true,
         .check = check_compute,
         .run = compute}),
};

}  // namespace
}  // namespace trellis::sim::core
