// Rendezvous through PMIx, as mpirun and srun --mpi=pmix offer it, for ranks that were told nothing else. The library
// is opened when it is needed; it need not be installed.
#pragma once

#include "ccl/rendezvous/unique_id.h"

namespace trellis::ccl {

// Collective over the job. Rank 0's id, created by `make`, is returned on every rank. Throws system_error when PMIx
// cannot be used, TimedOut when not all ranks came, and runtime_error in a build without PMIx.
UniqueId id_through_pmix(int rank, UniqueId (*make)(), Deadline);

// The job's number of ranks, from PMIx.
int ranks_by_pmix();

}  // namespace trellis::ccl
