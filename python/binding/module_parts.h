// The parts of trellis._native: a source each.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <variant>
#include <vector>

#include "kernels/types/dtype.h"
#include "sim/core/run/run.h"

namespace trellis::binding {

namespace nb = nanobind;

void add_schedules(nb::module_&);
void add_runs(nb::module_&);
void add_machines(nb::module_&);
void add_prices(nb::module_&);
void add_workloads(nb::module_&);
void add_operations(nb::module_&);
void add_core(nb::module_&);
void add_drafts(nb::module_&);
void add_kernels(nb::module_&);
void add_train_jobs(nb::module_&);
void add_train_runs(nb::module_&);

// Contiguous arrays, written or only read.
using Array = nb::ndarray<nb::device::cpu, nb::c_contig>;
using ReadArray = nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>;

// The array that is returned owns the values.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> as_array(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return {kept->data(), {kept->size()}, owner};
}

// The totals of a run of a core's program, by name.
nb::dict dict_of(const sim::core::RunTotals&);

}  // namespace trellis::binding
