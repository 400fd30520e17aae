#include "trellis/torch/native/progress/python_signals.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <exception>
#include <utility>

#include <torch/csrc/utils/pybind.h>

namespace trellis::process_group {
namespace {

thread_local std::exception_ptr kept;

}  // namespace

bool takes_signals() { return syscall(SYS_gettid) == getpid() && Py_IsInitialized(); }

bool interrupted() {
  if (kept) return true;
  if (!takes_signals()) return false;
  const pybind11::gil_scoped_acquire for_handlers;
  if (PyErr_CheckSignals() == 0) return false;
  kept = std::make_exception_ptr(pybind11::error_already_set());
  return true;
}

void raise_kept() {
  if (kept) std::rethrow_exception(std::exchange(kept, nullptr));
}

void raise_if_interrupted() {
  if (interrupted()) raise_kept();
}

}  // namespace trellis::process_group
