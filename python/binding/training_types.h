// Types that the sources of trellis._native about training share.
#pragma once

#include <memory>
#include <stdexcept>

#include "ccl/communicator.h"
#include "ccl/interruption.h"
#include "python/binding/module_parts.h"
#include "train/config/job_config.h"
#include "train/whole/job.h"

namespace trellis::binding {

struct TrainConfig {
  train::JobConfig job;
  std::vector<std::string> notes;
};

// This process as a rank of the job that was launched.
struct WorldOfPython {
  std::shared_ptr<ccl::Communicator> ranks;
};

// A job that Python made and owns (`own`), or the job that a run trains; `job` becomes null when the run ends.
struct JobOfPython {
  std::shared_ptr<ccl::Communicator> world;  // outlives the job
  std::shared_ptr<train::Job> own;
  train::Job* job = nullptr;

  train::Job& get() const {
    if (job == nullptr) throw std::runtime_error("the run that trains this job is over");
    return *job;
  }
};

// Runs a call that waits for other ranks, without the GIL. Ctrl-C ends the wait: then this throws the exception that
// Python's signal handler has raised.
template <class Call>
void waiting(const Call& call) {
  try {
    const nb::gil_scoped_release others_may_run;
    const ccl::Interruption by_signals([] {
      const nb::gil_scoped_acquire for_handlers;
      return PyErr_Occurred() != nullptr || PyErr_CheckSignals() != 0;
    });
    call();
  } catch (const nb::python_error&) {
    throw;
  } catch (...) {
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    throw;
  }
}

}  // namespace trellis::binding
