#include "ccl/transports/segment/segment.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/random.h>

#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>

#include "ccl/transports/notice.h"
#include "kernels/dispatch/cpu.h"
#include "kernels/dispatch/system_files.h"

namespace trellis::ccl {
namespace {

constexpr std::uint64_t magic = 0x7472'656C'6C69'7308;  // the last byte is the version of the layout
constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

// Read once: a communicator of hundreds of CPUs would wait milliseconds for the files.
kernels::ThreadPlace place_of(int cpu) {
  static std::mutex mutex;
  static std::array<std::optional<kernels::ThreadPlace>, CPU_SETSIZE> known;
  const std::scoped_lock lock(mutex);
  std::optional<kernels::ThreadPlace>& place = known[static_cast<std::size_t>(cpu)];
  if (!place) place = kernels::place_of(cpu);
  return *place;
}

void store(Cpus& cpus, const cpu_set_t& set) {
  std::uint64_t words[std::extent_v<Cpus>];
  static_assert(sizeof words == sizeof set);
  std::memcpy(words, &set, sizeof set);
  for (std::size_t i = 0; i < std::size(words); ++i) cpus[i].store(words[i], std::memory_order_relaxed);
}

}  // namespace

std::size_t SegmentShape::board_words() const {
  return 1 + (most_notice_bytes(ranks) + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
}

std::size_t SegmentShape::boards_at() const {
  return sizeof(Header) + static_cast<std::size_t>(ranks) * sizeof(RankArea);
}

std::size_t SegmentShape::rings_at() const {
  return whole_pages(boards_at() + static_cast<std::size_t>(ranks) * 2 * board_words() * sizeof(std::uint64_t));
}

std::size_t SegmentShape::slots_at() const { return rings_at() + whole_pages(lane_index(0, ranks, 0) * sizeof(Ring)); }

std::size_t SegmentShape::bytes() const { return slots_at() + lane_index(0, ranks, 0) * ring_cells * slot_bytes; }

void Segment::begin(void* zeroed, const SegmentShape& shape) {
  Header& header = *static_cast<Header*>(zeroed);
  header.bytes = shape.bytes();
  header.ranks = shape.ranks;
  header.lanes = shape.lanes;
  header.slot_bytes = shape.slot_bytes;
  // Without random numbers it still works, but communicators are less well told apart.
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
    throw std::invalid_argument(fmt::format("the shared segment has {} bytes; its header says {}", bytes,
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
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) std::memset(&mine, 0xFF, sizeof mine);
  cpu_set_t firsts;
  CPU_ZERO(&firsts);
  std::set<int> sockets;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mine)) continue;
    const kernels::ThreadPlace place = place_of(cpu);
    CPU_SET(place.first_of_core, &firsts);
    sockets.insert(place.socket);
  }
  RankArea& own = area(rank);
  store(own.cores, mine);
  store(own.whole_cores, firsts);
  own.socket.store(sockets.size() == 1 ? *sockets.begin() : -1, std::memory_order_relaxed);
  own.l2_bytes.store(kernels::cpu().l2_bytes, std::memory_order_relaxed);
  own.l3_bytes.store(kernels::cpu().l3_bytes, std::memory_order_relaxed);
}

int Segment::cores() const { return together(&RankArea::cores); }

int Segment::together(Cpus RankArea::*set) const {
  int count = 0;
  for (int i = 0; i < 16; ++i) {
    std::uint64_t all = 0;
    for (Rank r = 0; r < shape_.ranks; ++r) all |= (area(r).*set)[i].load(std::memory_order_relaxed);
    count += std::popcount(all);
  }
  return count;
}

RankPlaces Segment::places() const {
  RankPlaces places{.cores = together(&RankArea::whole_cores),
                    .l2_bytes = area(0).l2_bytes.load(std::memory_order_relaxed),
                    .l3_bytes = area(0).l3_bytes.load(std::memory_order_relaxed)};
  for (Rank r = 0; r < shape_.ranks; ++r) places.sockets.push_back(area(r).socket.load(std::memory_order_relaxed));
  return places;
}

std::atomic<std::uint64_t>* Segment::half_board(Rank r, std::uint32_t half) const {
  const std::size_t at = (static_cast<std::size_t>(r) * 2 + half) * shape_.board_words();
  return reinterpret_cast<std::atomic<std::uint64_t>*>(base_ + shape_.boards_at()) + at;
}

// Writes the half that nobody reads, except a reader that began before the last post.
void Segment::post(Rank rank, std::span<const std::byte> bytes) const {
  std::vector<std::uint64_t> words(shape_.board_words());
  if (bytes.size() > (words.size() - 1) * sizeof words[0])
    throw std::invalid_argument(
        fmt::format("a post of {} bytes: expected at most {}", bytes.size(), most_notice_bytes(shape_.ranks)));
  words[0] = bytes.size();
  std::memcpy(words.data() + 1, bytes.data(), bytes.size());
  std::atomic<std::uint32_t>& posts = area(rank).posts;
  const std::uint32_t next = posts.load(std::memory_order_relaxed) + 1;
  std::atomic<std::uint64_t>* const board = half_board(rank, next % 2);
  std::atomic_thread_fence(std::memory_order_release);  // a reader that sees one of these words sees the last post too
  for (std::size_t i = 0; i < words.size(); ++i) board[i].store(words[i], std::memory_order_relaxed);
  posts.store(next, std::memory_order_release);
}

std::vector<std::byte> Segment::posted(Rank rank) const {
  std::vector<std::uint64_t> words(shape_.board_words());
  for (;;) {
    const std::uint32_t last = area(rank).posts.load(std::memory_order_acquire);
    const std::atomic<std::uint64_t>* const board = half_board(rank, last % 2);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = board[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (area(rank).posts.load(std::memory_order_relaxed) == last) break;
  }
  const std::size_t most = (words.size() - 1) * sizeof words[0];
  if (words[0] > most)
    throw std::invalid_argument(
        fmt::format("the board of rank {} has {} bytes: expected at most {}", rank, words[0], most));
  const auto* const begin = reinterpret_cast<const std::byte*>(words.data() + 1);
  return {begin, begin + words[0]};
}

std::vector<Rank> Segment::missing() const {
  std::vector<Rank> ranks;
  for (Rank r = 0; r < shape_.ranks; ++r)
    if (area(r).pid.load(std::memory_order_acquire) == 0) ranks.push_back(r);
  return ranks;
}

Outcome Segment::settle(Outcome to) const {
  Outcome found = Outcome::open;
  return header().outcome.compare_exchange_strong(found, to) ? to : found;
}

}  // namespace trellis::ccl
