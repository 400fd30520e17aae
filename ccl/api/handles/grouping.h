// This thread's open group, and how calls are run: now, in the background, or at the group's end.
#pragma once

#include <memory>
#include <vector>

#include "ccl/api/handles/comm.h"
#include "ccl/api/handles/exception_boundary.h"

namespace trellis::ccl::api {

void note_group_failure(const std::exception_ptr&);  // only the first counts; ignored while no group is open
void keep_until_group_ends(std::shared_ptr<void>);   // ignored while no group is open

// Wraps a call that may be in a group: when it fails, the group fails.
template <class Body>
trellis_result issued(Body&& body) noexcept {
  return guarded([&] {
    try {
      return body();
    } catch (...) {
      note_group_failure(std::current_exception());
      throw;
    }
  });
}

// Whether this thread's open group holds calls of the communicator. If so, the group's end closes it, after them.
bool close_when_group_ends(const std::shared_ptr<Comm>&);

// Runs the job now, in the background, or when the group ends. If it runs now, throws what it throws.
trellis_result begin(CommunicatorJob);

// Runs jobs, each in a thread of its own. Returns when all except background jobs have ended. Throws the first failure.
trellis_result do_all(const std::vector<CommunicatorJob>&);

}  // namespace trellis::ccl::api
