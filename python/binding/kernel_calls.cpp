// Kernels on memory that is given by its address: torch's tensors and numpy's arrays.
#include "kernels/optimizers/adamw.h"
#include "kernels/reduce/cast.h"
#include "python/binding/module_parts.h"

namespace trellis::binding {
namespace {

using namespace nb::literals;
using namespace kernels;

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

WeightStorage keep_named(const std::string& word) {
  for (std::size_t k = 0; k < keep_count; ++k)
    if (name(static_cast<WeightStorage>(k)) == word) return static_cast<WeightStorage>(k);
  throw std::invalid_argument("keep " + word + ": expected f32, f32_copy, bf16_nearest, bf16_stochastic or bf16_kahan");
}

struct AdamWCall {
  std::string keep = "f32", gradient_type = "f32", moment_type = "f32";
  std::uintptr_t weights = 0, rest = 0, gradient = 0, first = 0, second = 0;
  std::size_t count = 0;
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01, scale = 1;
  std::uint64_t step = 1, seed = 0, tensor = 0, offset = 0;
  int threads = 1;
};

void run(const AdamWCall& c) {
  const nb::gil_scoped_release others_may_run;
  adamw({.keep = keep_named(c.keep), .values = at(c.weights), .rest = at(c.rest)},
        {.type = dtype_named(c.gradient_type), .values = at(c.gradient), .scale = c.scale},
        {.type = dtype_named(c.moment_type), .first = at(c.first), .second = at(c.second)}, c.count,
        {.learning_rate = c.learning_rate,
         .beta1 = c.beta1,
         .beta2 = c.beta2,
         .epsilon = c.epsilon,
         .weight_decay = c.weight_decay,
         .step = c.step,
         .random = {.seed = c.seed, .step = c.step, .tensor = c.tensor, .first = c.offset},
         .threads = c.threads});
}

}  // namespace

void add_kernels(nb::module_& m) {
  nb::class_<AdamWCall>(m, "AdamWCall")
      .def(nb::init<>())
      .def_rw("keep", &AdamWCall::keep)
      .def_rw("gradient_type", &AdamWCall::gradient_type)
      .def_rw("moment_type", &AdamWCall::moment_type)
      .def_rw("weights", &AdamWCall::weights)
      .def_rw("rest", &AdamWCall::rest)
      .def_rw("gradient", &AdamWCall::gradient)
      .def_rw("first", &AdamWCall::first)
      .def_rw("second", &AdamWCall::second)
      .def_rw("count", &AdamWCall::count)
      .def_rw("learning_rate", &AdamWCall::learning_rate)
      .def_rw("beta1", &AdamWCall::beta1)
      .def_rw("beta2", &AdamWCall::beta2)
      .def_rw("epsilon", &AdamWCall::epsilon)
      .def_rw("weight_decay", &AdamWCall::weight_decay)
      .def_rw("scale", &AdamWCall::scale)
      .def_rw("step", &AdamWCall::step)
      .def_rw("seed", &AdamWCall::seed)
      .def_rw("tensor", &AdamWCall::tensor)
      .def_rw("offset", &AdamWCall::offset)
      .def_rw("threads", &AdamWCall::threads)
      .def("run", &run);
  m.def(
      "element_bytes", [](const std::string& type) { return size_of(dtype_named(type)); }, "type"_a);
  m.def(
      "cast",
      [](const std::string& from, std::uintptr_t source, const std::string& to, std::uintptr_t target,
         std::size_t count, const std::string& rounding, std::uint64_t seed, std::uint64_t step, std::uint64_t tensor,
         std::uint64_t offset) {
        const nb::gil_scoped_release others_may_run;
        cast(dtype_named(from), at(source), dtype_named(to), at(target), count,
             {.rounding = rounding_named(rounding),
              .random = {.seed = seed, .step = step, .tensor = tensor, .first = offset}});
      },
      "source_type"_a, "source"_a, "target_type"_a, "target"_a, "count"_a, "rounding"_a = "nearest", "seed"_a = 0,
      "step"_a = 0, "tensor"_a = 0, "offset"_a = 0);
}

}  // namespace trellis::binding
