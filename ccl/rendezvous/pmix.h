// PMIx, as mpirun and srun --mpi=pmix offer it: how ranks that were told nothing else find the store. The library is
// opened when it is needed; nothing must be installed.
#pragma once

#include "ccl/rendezvous/unique_id.h"

namespace trellis::ccl {

// Every rank of the job calls this. Rank 0's id, made by `make`, is what all of them return. Throws system_error when
// PMIx cannot be used, TimedOut when not all ranks came, and runtime_error in a build without PMIx.
UniqueId id_through_pmix(int rank, UniqueId (*make)(), Deadline);

// How many ranks the job has, by PMIx.
int ranks_by_pmix();

}  // namespace trellis::ccl
