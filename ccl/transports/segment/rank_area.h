// What a rank publishes in the memory that the ranks of one host share, beside its board and its messages.
#pragma once

#include <atomic>
#include <cstdint>

#include "ccl/transports/segment/doorbell.h"

namespace trellis::ccl {

// A bit set of CPUs. Numbers beyond its size wrap around: a larger machine seems to have fewer CPUs.
using Cpus = std::atomic<std::uint64_t>[16];

struct alignas(128) RankArea {
  Doorbell bell;
  std::atomic<std::int32_t> pid;  // 0: has not joined
  std::atomic<std::int32_t> window_fd;
  std::atomic<std::uint64_t> window_bytes;
  std::atomic<std::uint64_t> base;                // address of the segment in its address space
  std::atomic<std::uint32_t> claimed;             // a process has taken this rank
  std::atomic<std::uint32_t> left;                // it has closed the communicator
  std::atomic<std::uint32_t> fetches;             // it can read the memory of all others (process_vm_readv)
  std::atomic<std::uint32_t> withdrawn;           // data that it offers in place may have been freed
  Cpus cores;                                     // bit set of the CPUs that it may run on
  Cpus whole_cores;                               // the first CPU of each core that it may run on
  Cpus caches;                                    // the first CPU of each L3 cache that it may use
  std::atomic<std::int32_t> socket;               // -1: several
  std::atomic<std::int32_t> granted;              // CPUs that its control group may keep busy; 0: all
  std::atomic<std::uint64_t> group;               // that control group; see kernels::CgroupCpuQuota
  std::atomic<std::uint64_t> l2_bytes, l3_bytes;  // of the caches
  // Number of times that the activity was shown. Its lowest bit selects the record that was written last. A rank that
  // is preempted, or dies, while it writes the other record leaves that one whole.
  alignas(64) std::atomic<std::uint32_t> version;
  using Record = std::atomic<std::uint64_t>[6];  // a RankActivity, without what it says of other communicators
  Record records[2];
  // What the activity says of other communicators: the awaited rank (see RankActivity::elsewhere) plus one, and three
  // counters (heartbeats, moves, waits).
  std::atomic<std::uint64_t> elsewhere;
  alignas(64) std::atomic<std::uint32_t> posts;  // number of posts to the board; its lowest bit selects the half that
                                                 // has the last one
  std::atomic<std::uint32_t> in_place_reads;     // odd while a thread of the senders' process reads; see InPlaceRead
  // The last all-to-all round in which it read messages in the memory of other ranks, once it has read them.
  alignas(128) std::atomic<std::uint64_t> round_read;
};

}  // namespace trellis::ccl
