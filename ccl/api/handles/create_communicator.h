// Rendezvous of a new communicator's ranks, in the ways that the C API offers.
#pragma once

#include <functional>
#include <memory>

#include "ccl/api/handles/argument_conversion.h"
#include "ccl/api/handles/handle_tables.h"
#include "ccl/store.h"

namespace trellis::ccl::api {

using Rendezvous = std::function<std::shared_ptr<Store>(Deadline)>;

Rendezvous rendezvous_by(const trellis_unique_id&);
Rendezvous rendezvous_by_environment(const LaunchedProcess&);  // each call is for the process's next communicator

// Joins the ranks into the communicator. It can be cancelled while it waits.
void join(Comm&, const Rendezvous&, Rank rank, Rank ranks, const Config&);

// Gives out the handle of a new communicator and starts the work that creates it, from `parent` unless that is null. On
// failure *out is NULL and nothing is left behind.
trellis_result begin_for(trellis_comm* out, bool background, std::function<void(Comm&)> work,
                         std::shared_ptr<Comm> parent = nullptr);

void check_ranks(int rank, int ranks);

}  // namespace trellis::ccl::api
