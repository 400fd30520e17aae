#include "tests/kernels/calls.h"

#include "kernels/layers/activation.h"
#include "kernels/layers/cross_entropy.h"
#include "kernels/layers/embedding.h"
#include "kernels/layers/layer_norm.h"
#include "kernels/layers/matmul.h"
#include "kernels/layers/rms_norm.h"
#include "kernels/layers/rotary.h"
#include "kernels/layers/softmax.h"
#include "kernels/optimizers/adamw.h"
#include "kernels/optimizers/lamb.h"
#include "kernels/optimizers/sgd.h"
#include "kernels/reduce/cast.h"
#include "kernels/reduce/dot.h"
#include "kernels/reduce/elementwise.h"
#include "kernels/reduce/reduce.h"
#include "kernels/types/mx.h"

namespace trellis::kernels {
namespace {

using enum DType;
using At = std::vector<void*>;

constexpr std::size_t n0 = call_elements, columns = 3;  // labels, ids and positions are below 3

Piece in(std::string name, DType type, std::size_t count = n0) { return {std::move(name), type, count}; }
Piece out(std::string name, DType type, std::size_t count = n0) { return {std::move(name), type, count, true}; }
Piece typed(Piece p) {
  p.typed = true;
  return p;
}
Piece optional(Piece p) {
  p.typed = p.optional = true;
  return p;
}
float* floats(void* at) { return static_cast<float*>(at); }
std::int32_t* ints(void* at) { return static_cast<std::int32_t*>(at); }

void add_elementwise(std::vector<Call>& all) {
  all.push_back({"cast", {"cast"}, {in("src", f32), out("dst", bf16)}, [](const At& at, std::size_t n, int threads) {
                   cast(f32, at[0], bf16, at[1], n, {.threads = threads});
                 }});
  all.push_back({"cast of one size",
                 {"cast"},
                 {in("src", f16), out("dst", bf16)},
                 [](const At& at, std::size_t n, int threads) {
                   cast(f16, at[0], bf16, at[1], n, {.rounding = Rounding::stochastic, .threads = threads});
                 },
                 {{1, 0}}});
  all.push_back({"fill", {"fill"}, {out("dst", f32)}, [](const At& at, std::size_t n, int threads) {
                   fill(f32, at[0], n, 1.5, threads);
                 }});
  all.push_back(
      {"scale",
       {"scale"},
       {in("src", bf16), out("dst", bf16)},
       [](const At& at, std::size_t n, int threads) { scale(bf16, 3, at[0], at[1], n, {.threads = threads}); },
       {{1, 0}}});
  all.push_back({"axpy", {"axpy"}, {in("x", f32), out("y", f32)}, [](const At& at, std::size_t n, int threads) {
                   axpy(f32, 3, at[0], at[1], n, {.threads = threads});
                 }});
  all.push_back({"reduce",
                 {"reduce"},
                 {in("a source", bf16), in("a source", bf16), in("a source", bf16), out("dst", bf16)},
                 [](const At& at, std::size_t n, int threads) {
                   const void* const sources[] = {at[0], at[1], at[2]};
                   reduce(Reduction::sum, bf16, sources, at[3], n, {.threads = threads});
                 },
                 {{3, 0}, {3, 1}, {3, 2}}});
  all.push_back({"dot", {"dot"}, {in("x", f32), in("y", f32)}, [](const At& at, std::size_t n, int threads) {
                   dot(f32, at[0], at[1], n, threads);
                 }});
  all.push_back({"sum_of_squares", {"squares"}, {in("x", f16)}, [](const At& at, std::size_t n, int threads) {
                   sum_of_squares(f16, at[0], n, threads);
                 }});
}

void add_activations(std::vector<Call>& all) {
  for (std::size_t i = 0; i < activation_count; ++i) {
    const auto a = static_cast<Activation>(i);
    all.push_back({std::string(name(a)),
                   {std::string(name(a))},
                   {in("x", f32), out("y", f32)},
                   [a](const At& at, std::size_t n, int threads) { activate(a, f32, at[0], at[1], n, threads); },
                   {{1, 0}}});
    const std::string gradient = std::string(name(a)) + "_gradient";
    all.push_back(
        {gradient,
         {gradient},
         {in("dy", bf16), in("x", bf16), out("dx", bf16)},
         [a](const At& at, std::size_t n, int threads) { activate_gradient(a, bf16, at[0], at[1], at[2], n, threads); },
         {{2, 0}, {2, 1}}});
  }
  all.push_back({"swiglu",
                 {"swiglu"},
                 {in("gate", f32), in("up", f32), out("y", f32)},
                 [](const At& at, std::size_t n, int threads) { swiglu(f32, at[0], at[1], at[2], n, threads); },
                 {{2, 0}, {2, 1}}});
  all.push_back({"swiglu_gradient",
                 {"swiglu_gradient"},
                 {in("dy", f32), in("gate", f32), in("up", f32), out("dgate", f32), out("dup", f32)},
                 [](const At& at, std::size_t n, int threads) {
                   swiglu_gradient(f32, at[0], at[1], at[2], at[3], at[4], n, threads);
                 },
                 {{3, 0}, {3, 1}, {3, 2}, {4, 0}, {4, 1}, {4, 2}}});
}

void add_optimizers(std::vector<Call>& all) {
  const std::vector<Piece> state = {in("the gradient", bf16), out("the first moments", f32),
                                    out("the second moments", f32)};
  std::vector<Piece> copied = state, kahan = state;
  copied.push_back(out("the parameters", f32));
  copied.push_back(out("the bf16 copy", bf16));
  kahan.push_back(out("the parameters", bf16));
  kahan.push_back(out("the parameters' rest", bf16));
  all.push_back({"adamw", {"adamw"}, copied, [](const At& at, std::size_t n, int threads) {
                   adamw({.keep = WeightStorage::f32_copy, .values = at[3], .copy = at[4]}, {bf16, at[0]},
                         {f32, at[1], at[2]}, n, {.threads = threads});
                 }});
  all.push_back({"adamw with a rest", {"adamw"}, kahan, [](const At& at, std::size_t n, int threads) {
                   adamw({.keep = WeightStorage::bf16_kahan, .values = at[3], .rest = at[4]}, {bf16, at[0]},
                         {f32, at[1], at[2]}, n, {.threads = threads});
                 }});
  all.push_back({"sgd",
                 {"sgd"},
                 {in("the gradient", f32), out("the momentum", bf16), out("the parameters", bf16)},
                 [](const At& at, std::size_t n, int threads) {
                   sgd({.keep = WeightStorage::bf16_stochastic, .values = at[2]}, {f32, at[0]}, bf16, at[1], n,
                       {.threads = threads});
                 }});
  all.push_back({"lamb_moments",
                 {"lamb"},
                 {in("the gradient", f32), out("the first moments", f32), out("the second moments", f32),
                  in("the parameters", f32)},
                 [](const At& at, std::size_t n, int threads) {
                   lamb_moments({.values = at[3]}, {f32, at[0]}, {f32, at[1], at[2]}, n, {.threads = threads});
                 }});
  all.push_back({"lamb_apply",
                 {"lamb"},
                 {in("the first moments", f32), in("the second moments", f32), out("the parameters", f32)},
                 [](const At& at, std::size_t n, int threads) {
                   lamb_apply({.values = at[2]}, {f32, at[0], at[1]}, 0.5, n, {.threads = threads});
                 }});
}

void add_norms(std::vector<Call>& all) {
  const Piece x = in("x", f32, n0 * columns), dy = in("dy", f32, n0 * columns), y = out("y", f32, n0 * columns),
              dx = out("dx", f32, n0 * columns), weight = in("weight", f32, columns), bias = in("bias", f32, columns),
              dweight = optional(out("dweight", f32, columns)), scales = typed(in("scales", f32));
  all.push_back({"rms_norm",
                 {"rms_norm"},
                 {x, weight, y, optional(out("scales", f32))},
                 [](const At& at, std::size_t n, int threads) {
                   rms_norm(f32, at[0], at[1], at[2], floats(at[3]), n, columns, {.threads = threads});
                 },
                 {{2, 0}}});
  all.push_back({"rms_norm_gradient",
                 {"rms_norm_gradient", "rms_norm_weight"},
                 {dy, x, weight, scales, dx, dweight},
                 [](const At& at, std::size_t n, int threads) {
                   rms_norm_gradient(f32, at[0], at[1], at[2], floats(at[3]), at[4], floats(at[5]), n, columns,
                                     threads);
                 },
                 {{4, 0}, {4, 1}}});
  all.push_back(
      {"layer_norm",
       {"layer_norm"},
       {x, weight, bias, y, optional(out("means", f32)), optional(out("scales", f32))},
       [](const At& at, std::size_t n, int threads) {
         layer_norm(f32, at[0], at[1], at[2], at[3], {floats(at[4]), floats(at[5])}, n, columns, {.threads = threads});
       },
       {{3, 0}}});
  all.push_back({"layer_norm_gradient",
                 {"layer_norm_gradient", "layer_norm_weight"},
                 {dy, x, weight, typed(in("means", f32)), scales, dx, typed(out("dweight", f32, columns)),
                  typed(out("dbias", f32, columns))},
                 [](const At& at, std::size_t n, int threads) {
                   layer_norm_gradient(f32, at[0], at[1], at[2], {floats(at[3]), floats(at[4])}, at[5], floats(at[6]),
                                       floats(at[7]), n, columns, threads);
                 },
                 {{5, 0}, {5, 1}}});
}

void add_softmaxes(std::vector<Call>& all) {
  const std::size_t table = n0 * columns;
  all.push_back(
      {"softmax",
       {"softmax"},
       {in("x", bf16, table), out("y", bf16, table)},
       [](const At& at, std::size_t n, int threads) { softmax(bf16, at[0], at[1], n, columns, {.threads = threads}); },
       {{1, 0}}});
  all.push_back({"softmax_gradient",
                 {"softmax_gradient"},
                 {in("dy", f32, table), in("y", f32, table), out("dx", f32, table)},
                 [](const At& at, std::size_t n, int threads) {
                   softmax_gradient(f32, at[0], at[1], at[2], n, columns, {.threads = threads});
                 },
                 {{2, 0}, {2, 1}}});
  const Piece logits = in("logits", f32, table), labels = typed(in("labels", i32));
  all.push_back({"cross_entropy_parts",
                 {"cross_entropy"},
                 {logits, labels, typed(out("largest", f32)), typed(out("sums", f32)), typed(out("targets", f32))},
                 [](const At& at, std::size_t n, int threads) {
                   cross_entropy_parts(f32, at[0], ints(at[1]), floats(at[2]), floats(at[3]), floats(at[4]), n, columns,
                                       {.threads = threads});
                 }});
  all.push_back({.name = "cross_entropy_finish",
                 .families = {},
                 .pieces = {labels, typed(in("largest", f32)), typed(in("sums", f32)), typed(in("targets", f32)),
                            optional(out("losses", f32)), typed(out("log_sums", f32))},
                 .run =
                     [](const At& at, std::size_t n, int) {
                       cross_entropy_finish(ints(at[0]), floats(at[1]), floats(at[2]), floats(at[3]), floats(at[4]),
                                            floats(at[5]), n);
                     },
                 .in_place = {{4, 1}, {4, 2}, {4, 3}, {5, 1}, {5, 2}, {5, 3}},
                 .threaded = false});
  all.push_back({"cross_entropy_gradient",
                 {"cross_entropy_gradient"},
                 {logits, labels, typed(in("log_sums", f32)), out("dlogits", f32, table)},
                 [](const At& at, std::size_t n, int threads) {
                   cross_entropy_gradient(f32, at[0], ints(at[1]), floats(at[2]), at[3], n, columns,
                                          {.threads = threads});
                 },
                 {{3, 0}}});
}

void add_tokens(std::vector<Call>& all) {
  const Piece ids = typed(in("ids", i32)), rows = in("dy", bf16, n0 * columns);
  all.push_back({"embedding",
                 {},
                 {in("table", bf16, 3 * columns), ids, out("out", bf16, n0 * columns)},
                 [](const At& at, std::size_t n, int threads) {
                   embedding({bf16, 3, columns}, at[0], ints(at[1]), at[2], n, threads);
                 }});
  all.push_back(
      {"embedding_gradient",
       {},
       {rows, ids, out("dtable", f32, 3 * columns)},
       [](const At& at, std::size_t n, int threads) {
         embedding_gradient({f32, 3, columns}, at[0], ints(at[1]), at[2], n, {.dy = bf16, .threads = threads});
       }});
  all.push_back({"rotary",
                 {},
                 {in("x", f32, n0 * 4), out("y", f32, n0 * 4), typed(in("cosines", f32, n0 * 2)),
                  typed(in("sines", f32, n0 * 2)), typed(in("positions", i32))},
                 [](const At& at, std::size_t n, int threads) {
                   rotary(f32, at[0], at[1], {.rows = n, .heads = 1, .head_size = 4, .turned = 4, .stride = 4},
                          {floats(at[2]), floats(at[3]), n0}, {.positions = ints(at[4]), .threads = threads});
                 },
                 {{1, 0}}});
  all.back().pieces[4].optional = true;
  all.push_back({.name = "rotary_table",
                 .families = {},
                 .pieces = {typed(out("cosines", f32, n0 * 2)), typed(out("sines", f32, n0 * 2))},
                 .run = [](const At& at, std::size_t n, int) { rotary_table(floats(at[0]), floats(at[1]), 5, n, 4); },
                 .threaded = false});
}

void add_blocks(std::vector<Call>& all) {
  all.push_back({"matmul",
                 {},
                 {in("a", f32, n0 * columns), in("b", f32, columns * columns), out("c", f32, n0 * columns)},
                 [](const At& at, std::size_t n, int threads) {
                   matmul({n, columns, columns}, f32, {at[0], columns}, {at[1], columns}, f32, at[2], columns,
                          {.threads = threads});
                 }});
  for (const MxFormat f : mx_formats) {
    const std::size_t bytes = mx_element_bytes(f, n0);
    all.push_back({.name = "mx_encode",
                   .families = {},
                   .pieces = {typed(in("src", f32)), out("elements", u8, bytes), out("scales", u8, n0 / mx_block)},
                   .run = [f](const At& at, std::size_t n,
                              int) { mx_encode(f, floats(at[0]), at[1], static_cast<std::uint8_t*>(at[2]), n); },
                   .threaded = false});
    all.push_back({.name = "mx_decode",
                   .families = {},
                   .pieces = {in("elements", u8, bytes), in("scales", u8, n0 / mx_block), typed(out("dst", f32))},
                   .run = [f](const At& at, std::size_t n,
                              int) { mx_decode(f, at[0], static_cast<std::uint8_t*>(at[1]), floats(at[2]), n); },
                   .threaded = false});
  }
}

}  // namespace

std::vector<Call> calls() {
  std::vector<Call> all;
  add_elementwise(all);
  add_activations(all);
  add_optimizers(all);
  add_norms(all);
  add_softmaxes(all);
  add_tokens(all);
  add_blocks(all);
  return all;
}

}  // namespace trellis::kernels
