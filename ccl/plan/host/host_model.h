// Predicts how long a schedule takes between the ranks of one host: every step's cost on the core of its rank, messages
// as they fly between cores, and who waits for whom.
#pragma once

#include "ccl/plan/host/joined_programs.h"

namespace trellis::ccl {

// Costs in ns, and in ns per byte.
struct HostCosts {
  double operation = 0;          // to begin an operation
  double send = 0, receive = 0;  // per message: on the sender's core, on the receiver's
  double take = 0;               // per message of an all-to-all round, on the receiver's core
  double look = 0;               // per received message, for each lane that the receiver polls
  double second_line = 0;        // per message of more than one cache line, on either core
  double flight = 0;             // from a store until another core sees it
  double slot = 0;               // per message in slots, on either core
  double in_place = 0;           // per message that the receiver reads in place, from the sender's memory
  double answer = 0;             // after such a read, until the sender knows of it
  double local = 0;              // per copy or sum of a rank's own
  double byte_into_slot = 0, byte_from_slot = 0;
  double byte_read = 0;    // read in place
  double byte_served = 0;  // read in place, for the core whose memory it is, which serves one reader after another
  double made_here = 0;    // fraction by which byte_read is higher for bytes that the operation has made
  double byte_added = 0;   // per byte of a received sum, besides the reading
  double byte_local = 0;   // for each source of a local copy or sum
  double each_rank = 0;    // fraction by which every byte costs more for each rank beyond two
  double beyond_l2 = 0;    // the same where a rank touches more than its L2 cache holds
  double beyond_l3 = 0;    // the same where all together touch more than L3 caches of usual size
  double streamed = 0;     // added to made_here where results bypass the cache on their way to memory
  double far_flight = 0, far_byte = 0;  // factors of flight and of a byte between sockets
  double wake = 0;                      // until a rank runs that shares its hardware thread with others
};

// One virtual machine: Xeon (Sapphire Rapids), 16 cores, 2 MiB of L2 each: bench/results/host16.json.
extern const HostCosts sapphire_rapids;

// The time of one operation in us, on the slowest rank. Small operations are timed several back to back, as bench
// measures them. `readable`: peers can read the call's buffers.
double predicted_time(const JoinedPrograms&, const Call&, Rank ranks, const RankCores&, const HostCosts&,
                      bool readable);

}  // namespace trellis::ccl
