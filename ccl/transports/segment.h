// The memory that the ranks of one host share: a bell, a record and notes for each rank, and for each lane a ring of
// cells with a slot behind each. Pages that nobody touched cost nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ccl/transport.h"
#include "ccl/transports/cells.h"
#include "ccl/waiting.h"

namespace trellis::ccl {

// What a rank shows of itself.
struct alignas(128) RankArea {
  Bell bell;
  std::atomic<std::int32_t> pid;  // 0: has not joined
  std::atomic<std::int32_t> window_fd;
  std::atomic<std::uint64_t> window_bytes;
  std::atomic<std::uint64_t> base;                 // where the segment lies in its address space
  std::atomic<std::uint32_t> claimed;              // somebody is this rank
  std::atomic<std::uint32_t> left;                 // it has closed the communicator
  std::atomic<std::uint32_t> withdrawn;            // what it offers where it lies may have gone
  std::atomic<std::uint64_t> cores[16];            // where it may run, by bits
  alignas(64) std::atomic<std::uint32_t> version;  // of the record; odd while it is written
  std::atomic<std::uint64_t> record[5];            // an Activity
  alignas(64) std::atomic<std::uint32_t> round;    // of the note
  std::atomic<std::uint64_t> note[24];
};

struct alignas(128) Header {
  std::atomic<std::uint64_t> magic;  // stored last
  std::uint64_t bytes;
  std::int32_t ranks;
  std::int32_t lanes;
  std::uint64_t slot_bytes;
  std::uint64_t identity;          // drawn at random
  std::atomic<std::int32_t> lost;  // the rank that was lost first, plus one
  std::atomic<std::uint32_t> aborted;
};

// Where all of it lies.
struct SegmentShape {
  Rank ranks = 1;
  int lanes = 1;
  std::size_t slot_bytes = 0;

  std::size_t bytes() const;
  std::size_t rings_at() const;
  std::size_t slots_at() const;
  std::size_t lane_index(Rank from, Rank to, int lane) const {
    return (static_cast<std::size_t>(to) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(from)) *
               static_cast<std::size_t>(lanes) +
           static_cast<std::size_t>(lane);
  }
};

// A view of it; owns nothing.
class Segment {
 public:
  Segment() = default;
  Segment(void* base, const SegmentShape& shape) : base_(static_cast<std::byte*>(base)), shape_(shape) {}
  static void begin(void* zeroed, const SegmentShape&);  // writes the header
  // The shape that the header tells, checked against the size of the memory; throws invalid_argument.
  static SegmentShape read(const void* base, std::size_t bytes);

  const SegmentShape& shape() const { return shape_; }
  Header& header() const { return *reinterpret_cast<Header*>(base_); }
  RankArea& area(Rank r) const { return reinterpret_cast<RankArea*>(base_ + sizeof(Header))[r]; }
  Ring& ring(Rank from, Rank to, int lane) const {
    return reinterpret_cast<Ring*>(base_ + shape_.rings_at())[shape_.lane_index(from, to, lane)];
  }
  std::byte* slot(Rank from, Rank to, int lane, std::uint32_t cell) const {
    return base_ + shape_.slots_at() + (shape_.lane_index(from, to, lane) * ring_cells + cell) * shape_.slot_bytes;
  }
  std::byte* base() const { return base_; }

  void claim(Rank) const;       // first of all; throws invalid_argument when another has joined as it
  void show_cores(Rank) const;  // of the calling thread, before it joins
  int cores() const;            // that its ranks, which have joined, may run on between them

 private:
  std::byte* base_ = nullptr;
  SegmentShape shape_;
};

}  // namespace trellis::ccl
