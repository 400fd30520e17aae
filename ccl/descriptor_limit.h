// How many descriptors this process may have (RLIMIT_NOFILE). A large communicator needs more than the usual 1024: for
// rank 0's store, one for each rank; over TCP, one or two for each peer.
#pragma once

#include <cstddef>
#include <exception>

#include "ccl/errors.h"

namespace trellis::ccl {

// How many of `limit` descriptors unauthenticated connections may hold: a fourth, as all ranks of a large job may
// connect at once; at most 16,384, even where there is no limit.
std::size_t most_greeting(std::size_t limit);
bool raise_descriptor_limit();  // to the hard limit; false: it was there already, or could not be raised
// Raises the limit if it does not allow the descriptors in use and those that a communicator of so many ranks may need.
void allow_descriptors(Rank ranks);
// Returns the failure. If it is a lack of descriptors, it then also tells the limit, what is needed, and how to raise
// it.
std::exception_ptr with_descriptor_limit(std::exception_ptr, Rank rank, Rank ranks);

}  // namespace trellis::ccl
