// Layout of the memory that the ranks of one host share: a doorbell, an activity record, a board and room for its
// messages of all-to-all rounds for each rank, and for each lane a ring of cells with a slot for each. Untouched pages
// take no memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ccl/config.h"
#include "ccl/transports/join_outcome.h"
#include "ccl/transports/segment/allowed_cores.h"
#include "ccl/transports/segment/cells.h"
#include "ccl/transports/segment/rank_area.h"
#include "ccl/transports/transport.h"

namespace trellis::ccl {

struct alignas(128) SegmentHeader {
  std::atomic<std::uint64_t> magic;  // stored last
  std::uint64_t bytes;
  std::int32_t ranks;
  std::int32_t lanes;
  std::uint64_t slot_bytes;
  std::uint64_t round_bytes;
  std::uint64_t identity;             // random
  std::atomic<std::int32_t> lost;     // first rank that was lost, plus one
  std::atomic<std::int32_t> aborted;  // first rank that aborted, plus one
  std::atomic<JoinOutcome> outcome;   // of joining, for all ranks; changes once
};

inline std::size_t round_bytes_for(const Config& c) { return c.rounds ? std::size_t{64} << 10 : 0; }

// Sizes and offsets of the parts.
struct SegmentShape {
  Rank ranks = 1;
  int lanes = 1;
  std::size_t slot_bytes = 0;
  std::size_t round_bytes = 0;  // that a rank's messages of one round take together, at most

  std::size_t bytes() const;
  std::size_t board_words() const;  // size of half a board: its length in bytes, and its data
  std::size_t boards_at() const;
  std::size_t rings_at() const;
  std::size_t rounds_at() const;
  std::size_t cells_of_a_round() const;  // bytes
  std::size_t rooms_at() const;
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
  AllToAllCell& round(Rank r, std::uint32_t number) const {  // the cells of one round lie together
    return reinterpret_cast<AllToAllCell*>(base_ + shape_.rounds_at() +
                                           shape_.cells_of_a_round() * (number % round_cells))[r];
  }
  std::byte* room(Rank r, std::uint32_t number) const {
    return base_ + shape_.rooms_at() +
           (std::size_t{number % round_rooms} * static_cast<std::size_t>(shape_.ranks) + static_cast<std::size_t>(r)) *
               shape_.round_bytes;
  }
  std::byte* slot(Rank from, Rank to, int lane, std::uint32_t cell) const {
    return base_ + shape_.slots_at() + (shape_.lane_index(from, to, lane) * ring_cells + cell) * shape_.slot_bytes;
  }
  std::byte* base() const { return base_; }

  void post(Rank, std::span<const std::byte>) const;
  std::vector<std::byte> posted(Rank) const;  // throws invalid_argument if the length is larger than the board

  std::vector<Rank> missing() const;      // the ranks that have not joined
  JoinOutcome settle(JoinOutcome) const;  // sets the outcome if it is not set; returns the outcome

  void claim(Rank) const;  // first of all; throws invalid_argument when another process or thread has this rank
  void show_cores(Rank, const AllowedCores& = seen_here()) const;  // call it before joining
  int cores() const;         // number of CPUs that the joined ranks may run on and keep busy, together
  RankCores places() const;  // once all ranks have joined

 private:
  int in_all(Cpus RankArea::*) const;
  int together(Cpus RankArea::*) const;
  std::atomic<std::uint64_t>* half_board(Rank, std::uint32_t half) const;
  std::byte* base_ = nullptr;
  SegmentShape shape_;
};

}  // namespace trellis::ccl
