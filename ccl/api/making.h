// How the ranks of a new communicator meet, as the C API offers it.
#pragma once

#include <functional>
#include <memory>

#include "ccl/api/arguments.h"
#include "ccl/api/objects.h"
#include "ccl/store.h"

namespace trellis::ccl::api {

using Meeting = std::function<std::shared_ptr<Store>(Deadline)>;

Meeting meeting_by(const trellis_unique_id&);
Meeting meeting_by_environment(const Launched&);  // the first of this process, the second, ...

// Joins the ranks into the communicator, which can be given up while it waits.
void join(Comm&, const Meeting&, Rank rank, Rank ranks, const Config&);

// Gives the handle to the job's owner and begins the job. On failure *out is NULL and nothing is left.
trellis_result begin_for(trellis_comm* out, Job);

void check_ranks(int rank, int ranks);

}  // namespace trellis::ccl::api
