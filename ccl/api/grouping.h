// The group that is open in this thread, and where calls go that it may have to put off.
#pragma once

#include <memory>
#include <vector>

#include "ccl/api/boundary.h"
#include "ccl/api/comm.h"

namespace trellis::ccl::api {

void note_group_failure(const std::exception_ptr&);  // the first counts; nothing while no group is open
void keep_until_group_ends(std::shared_ptr<void>);   // the same

// A call that may stand in a group: when it fails, the group fails.
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

// Does it now, beside the caller, or when the group ends. Throws what the job throws if it is done now.
trellis_result begin(Job);

// Does jobs that have not been begun, each in a thread of its own; returns when those that are not for the background
// have ended. Throws the first failure.
trellis_result do_all(const std::vector<Job>&);

}  // namespace trellis::ccl::api
