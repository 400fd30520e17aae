// The Python module trellis._native: what the package needs of the library. trellis/*.py are what users see.
#include "python/binding/module_parts.h"

NB_MODULE(_native, module) {
  module.doc() = "Parts of libtrellis for the Python package trellis.";
  trellis::binding::add_schedules(module);
  trellis::binding::add_runs(module);
  trellis::binding::add_machines(module);
  trellis::binding::add_prices(module);
  trellis::binding::add_workloads(module);
  trellis::binding::add_operations(module);
  trellis::binding::add_core(module);
  trellis::binding::add_drafts(module);
  trellis::binding::add_kernels(module);
  trellis::binding::add_train_jobs(module);
  trellis::binding::add_train_runs(module);
}
