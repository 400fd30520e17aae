// The store of a job whose ranks were started by something: torchrun, mpirun, srun, trellis launch.
#pragma once

#include <memory>
#include <string>

#include "ccl/config.h"
#include "ccl/store.h"

namespace trellis::ccl {

inline constexpr int ports_of_ranks = 8;  // from the one that was told on: where rank 0's store may be

// Where the keeper of a meeting place at this host listens; "": at every address of the machine.
std::string listening_address(const std::string& host);

// With an address: rank 0 keeps the store, at the port that was told or, when another program has it (torchrun's own
// store does), at one of the next; to the end of its process. Without: PMIx tells where rank 0 keeps it. One rank alone
// has a memory_store. A second call finds the notes of the first: give each communicator a prefix of its own.
// Throws invalid_argument when the job was told too little, else as tcp_store does.
std::shared_ptr<Store> store_from_environment(const Launched&, Deadline);

}  // namespace trellis::ccl
