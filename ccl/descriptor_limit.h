// How many descriptors this process may have (RLIMIT_NOFILE). A large communicator needs more than the usual 1024: for
// rank 0's store, one for each rank; over TCP, one or two for each peer.
#pragma once

#include <cstddef>
#include <exception>

#include "ccl/errors.h"

namespace trellis::ccl {

// How many of `limit` descriptors may be held by connections that have said hello and not proven who they are: a
// fourth, as all ranks of a large job may greet at once; at most 16,384, even where there is no limit.
std::size_t most_greeting(std::size_t limit);
bool raise_descriptor_limit();  // to the hard limit; false: it is there already
// Raises it if those in use and what a communicator of so many ranks may need come to more.
void allow_descriptors(Rank ranks);
// What has failed; for lack of descriptors: with the limit, what is needed, and how to raise it.
std::exception_ptr with_descriptor_limit(std::exception_ptr, Rank rank, Rank ranks);

}  // namespace trellis::ccl
