// The store of a job that a launcher started: torchrun, mpirun, srun, trellis launch.
#pragma once

#include <memory>
#include <string>

#include "ccl/config.h"
#include "ccl/store.h"

namespace trellis::ccl {

inline constexpr int ports_of_ranks = 8;  // number of ports where rank 0's store may be, from the given one on

// Where rank 0's server listens if the launcher says that it is at `host`: at `host` if that is a loopback address;
// "": at all addresses of the machine.
std::string listening_address(const std::string& host);

// With an address, rank 0 keeps the store at the given port, or at one of the next if another program has it
// (torchrun's own store does). It keeps the store until all members have left it, or until nobody has used it for 30 s.
// Without an address, PMIx tells where rank 0 keeps it. A single rank gets a memory_store. A second call finds the
// notes of the first until the members have left them, so give each communicator its own prefix.
// Throws invalid_argument when the launcher told too little; otherwise as tcp_store does.
std::shared_ptr<Store> store_from_environment(const LaunchedProcess&, Deadline);

// A prefix for the next communicator of this process's job: every rank makes its communicators in the same order.
std::string next_job_prefix();

}  // namespace trellis::ccl
