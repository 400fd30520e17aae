// Layout of the memory that the ranks of one host share: a doorbell, an activity record and a board for each rank, and
// for each lane a ring of cells with a slot for each. Untouched pages take no memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ccl/transports/outcome.h"
#include "ccl/transports/segment/cells.h"
#include "ccl/transports/segment/seen_cores.h"
#include "ccl/transports/segment/waiting.h"
#include "ccl/transports/transport.h"

namespace trellis::ccl {

// A bit set of CPUs. Numbers beyond its size wrap around: a larger machine seems to have fewer CPUs.
using Cpus = std::atomic<std::uint64_t>[16];

// What a rank publishes.
struct alignas(128) RankArea {
  Bell bell;
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
  std::atomic<std::uint64_t> group;               // that control group; see kernels::Quota
  std::atomic<std::uint64_t> l2_bytes, l3_bytes;  // of the caches
  // Of the activity: the number of times that it was shown. Its lowest bit selects the record with the last one, so
  // that a rank that is preempted, or dies, while it writes the other record leaves that one whole.
  alignas(64) std::atomic<std::uint32_t> version;
  using Record = std::atomic<std::uint64_t>[6];  // an Activity, without what it says of other communicators
  Record records[2];
  // What it says of other communicators: the awaited rank's place plus one, and three counters (heartbeats, moves,
  // waits).
  std::atomic<std::uint64_t> elsewhere;
  alignas(64) std::atomic<std::uint32_t> posts;  // number of posts to the board; its lowest bit selects the half that
                                                 // has the last one
};

struct alignas(128) SegmentHeader {
  std::atomic<std::uint64_t> magic;  // stored last
  std::uint64_t bytes;
  std::int32_t ranks;
  std::int32_t lanes;
  std::uint64_t slot_bytes;
  std::uint64_t identity;             // random
  std::atomic<std::int32_t> lost;     // first rank that was lost, plus one
  std::atomic<std::int32_t> aborted;  // first rank that aborted, plus one
  std::atomic<Outcome> outcome;       // of joining, for all ranks; changes once
};

// Sizes and offsets of the parts.
struct SegmentShape {
  Rank ranks = 1;
  int lanes = 1;
  std::size_t slot_bytes = 0;

  std::size_t bytes() const;
  std::size_t board_words() const;  // size of half a board: its length in bytes, and its data
  std::size_t boards_at() const;
  std::size_t rings_at() const;
  std::size_t slots_at() const;
  std::size_t lane_index(Rank from, Rank to, int lane) const {
    return (static_cast<std::size_t>(to) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(from)) *
               static_cast<std::size_t>(lanes) +
           static_cast<std::size_t>(lane);
  }
};

// A view of the segment; owns nothing.
class Segment {
 public:
  Segment() = default;
  Segment(void* base, const SegmentShape& shape) : base_(static_cast<std::byte*>(base)), shape_(shape) {}
  static void begin(void* zeroed, const SegmentShape&);  // writes the header
  // Reads the shape from the header and checks it against the size of the memory; throws invalid_argument.
  static SegmentShape read(const void* base, std::size_t bytes);

  const SegmentShape& shape() const { return shape_; }
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  RankArea& area(Rank r) const { return reinterpret_cast<RankArea*>(base_ + sizeof(SegmentHeader))[r]; }
  Ring& ring(Rank from, Rank to, int lane) const {
    return reinterpret_cast<Ring*>(base_ + shape_.rings_at())[shape_.lane_index(from, to, lane)];
  }
  std::byte* slot(Rank from, Rank to, int lane, std::uint32_t cell) const {
    return base_ + shape_.slots_at() + (shape_.lane_index(from, to, lane) * ring_cells + cell) * shape_.slot_bytes;
  }
  std::byte* base() const { return base_; }

  void post(Rank, std::span<const std::byte>) const;
  std::vector<std::byte> posted(Rank) const;  // throws invalid_argument if the length is larger than the board

  std::vector<Rank> missing() const;  // the ranks that have not joined
  Outcome settle(Outcome) const;      // sets the outcome if it is not set; returns the outcome

  void claim(Rank) const;  // first of all; throws invalid_argument when another process or thread has this rank
  void show_cores(Rank, const SeenCores& = seen_here()) const;  // call it before joining
  int cores() const;          // number of CPUs that the joined ranks may run on and keep busy, together
  RankPlaces places() const;  // once all ranks have joined

 private:
  int in_all(Cpus RankArea::*) const;
  int together(Cpus RankArea::*) const;
  std::atomic<std::uint64_t>* half_board(Rank, std::uint32_t half) const;
  std::byte* base_ = nullptr;
  SegmentShape shape_;
};

}  // namespace trellis::ccl
