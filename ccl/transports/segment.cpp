#include "ccl/transports/segment.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/random.h>

#include <bit>
#include <cstring>
#include <stdexcept>

namespace trellis::ccl {
namespace {

constexpr std::uint64_t magic = 0x7472'656C'6C69'7305;  // the last byte is the layout's version
constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

std::size_t SegmentShape::rings_at() const {
  return whole_pages(sizeof(Header) + static_cast<std::size_t>(ranks) * sizeof(RankArea));
}

std::size_t SegmentShape::slots_at() const { return rings_at() + whole_pages(lane_index(0, ranks, 0) * sizeof(Ring)); }

std::size_t SegmentShape::bytes() const { return slots_at() + lane_index(0, ranks, 0) * ring_cells * slot_bytes; }

void Segment::begin(void* zeroed, const SegmentShape& shape) {
  Header& header = *static_cast<Header*>(zeroed);
  header.bytes = shape.bytes();
  header.ranks = shape.ranks;
  header.lanes = shape.lanes;
  header.slot_bytes = shape.slot_bytes;
  // Without random numbers communicators are told apart less well, and work.
  if (getrandom(&header.identity, sizeof header.identity, 0) != sizeof header.identity)
    header.identity = reinterpret_cast<std::uintptr_t>(zeroed);
  header.magic.store(magic, std::memory_order_release);
}

SegmentShape Segment::read(const void* base, std::size_t bytes) {
  const Header& header = *static_cast<const Header*>(base);
  if (bytes < sizeof(Header) || header.magic.load(std::memory_order_acquire) != magic)
    throw std::invalid_argument("the shared segment was not made by this version of the library");
  const SegmentShape shape{header.ranks, header.lanes, header.slot_bytes};
  if (shape.ranks < 1 || shape.lanes < 1 || shape.bytes() != bytes || header.bytes != bytes)
    throw std::invalid_argument(fmt::format("the shared segment has {} bytes and its header speaks of {}", bytes,
                                            static_cast<std::uint64_t>(header.bytes)));
  return shape;
}

void Segment::claim(Rank rank) const {
  if (area(rank).claimed.exchange(1) != 0)
    throw std::invalid_argument(
        fmt::format("rank {} has joined already: two processes or threads were told the same rank", rank));
}

void Segment::show_cores(Rank rank) const {
  cpu_set_t mine;
  static_assert(sizeof mine == sizeof RankArea::cores);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) std::memset(&mine, 0xFF, sizeof mine);
  std::uint64_t words[16];
  std::memcpy(words, &mine, sizeof mine);
  for (int i = 0; i < 16; ++i) area(rank).cores[i].store(words[i], std::memory_order_relaxed);
}

int Segment::cores() const {
  int count = 0;
  for (int i = 0; i < 16; ++i) {
    std::uint64_t all = 0;
    for (Rank r = 0; r < shape_.ranks; ++r) all |= area(r).cores[i].load(std::memory_order_relaxed);
    count += std::popcount(all);
  }
  return count;
}

}  // namespace trellis::ccl
