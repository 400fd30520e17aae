#include "ccl/transports/segment/segment.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "ccl/transports/membership_notice.h"
#include "text/refuse.h"

namespace trellis::ccl {
namespace {

constexpr std::uint64_t magic = 0x7472'656C'6C69'730E;  // the last byte is the version of the layout
constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

constexpr std::size_t cpu_words = std::extent_v<Cpus>;
using CpuWords = std::array<std::uint64_t, cpu_words>;

void add(CpuWords& set, int cpu) {
  const auto bit = static_cast<std::size_t>(cpu) % (cpu_words * 64);
  set[bit / 64] |= std::uint64_t{1} << bit % 64;
}

void store(Cpus& cpus, const CpuWords& set) {
  for (std::size_t i = 0; i < cpu_words; ++i) cpus[i].store(set[i], std::memory_order_relaxed);
}

void unite(CpuWords& set, const Cpus& cpus) {
  for (std::size_t i = 0; i < cpu_words; ++i) set[i] |= cpus[i].load(std::memory_order_relaxed);
}

int count(const CpuWords& set) {
  int cpus = 0;
  for (const std::uint64_t word : set) cpus += std::popcount(word);
  return cpus;
}

// The CPUs that the ranks of one control group may use together.
struct Granted {
  CpuWords cpus = {};
  int busy = std::numeric_limits<int>::max();  // so many of these CPUs at most
};

}  // namespace

std::size_t SegmentShape::board_words() const {
  return 1 + (most_notice_bytes(ranks) + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
}

std::size_t SegmentShape::boards_at() const {
  return sizeof(SegmentHeader) + static_cast<std::size_t>(ranks) * sizeof(RankArea);
}

std::size_t SegmentShape::rings_at() const {
  return whole_pages(boards_at() + static_cast<std::size_t>(ranks) * 2 * board_words() * sizeof(std::uint64_t));
}

std::size_t SegmentShape::rounds_at() const { return rings_at() + whole_pages(lane_index(0, ranks, 0) * sizeof(Ring)); }

// The cells of a round have pages of their own: CPUs fetch what seems to come next within a page, and would take lines
// of a later round from the rank that is about to write them.
std::size_t SegmentShape::cells_of_a_round() const {
  return whole_pages(static_cast<std::size_t>(ranks) * sizeof(AllToAllCell));
}

std::size_t SegmentShape::rooms_at() const { return rounds_at() + round_cells * cells_of_a_round(); }

std::size_t SegmentShape::slots_at() const {
  return rooms_at() + whole_pages(round_rooms * static_cast<std::size_t>(ranks) * round_bytes);
}

std::size_t SegmentShape::bytes() const { return slots_at() + lane_index(0, ranks, 0) * ring_cells * slot_bytes; }

void Segment::begin(void* zeroed, const SegmentShape& shape) {
  SegmentHeader& header = *static_cast<SegmentHeader*>(zeroed);
  header.bytes = shape.bytes();
  header.ranks = shape.ranks;
  header.lanes = shape.lanes;
  header.slot_bytes = shape.slot_bytes;
  header.round_bytes = shape.round_bytes;
  // Without random numbers communicators still work, but are told apart less reliably.
  if (getrandom(&header.identity, sizeof header.identity, 0) != sizeof header.identity)
    header.identity = reinterpret_cast<std::uintptr_t>(zeroed);
  header.magic.store(magic, std::memory_order_release);
}

SegmentShape Segment::read(const void* base, std::size_t bytes) {
  const SegmentHeader& header = *static_cast<const SegmentHeader*>(base);
  if (bytes < sizeof(SegmentHeader) || header.magic.load(std::memory_order_acquire) != magic)
    throw std::invalid_argument("the shared segment was not made by this version of the library");
  const SegmentShape shape{header.ranks, header.lanes, header.slot_bytes, header.round_bytes};
  if (shape.ranks < 1 || shape.lanes < 1 || shape.bytes() != bytes || header.bytes != bytes)
    text::refuse("the shared segment has {} bytes; its header says {}", bytes,
                 static_cast<std::uint64_t>(header.bytes));
  return shape;
}

void Segment::claim(Rank rank) const {
  if (area(rank).claimed.exchange(1) != 0)
    text::refuse("rank {} has joined already: two processes or threads were told the same rank", rank);
}

void Segment::show_cores(Rank rank, const AllowedCores& seen) const {
  CpuWords mine = {}, firsts = {}, caches = {};
  std::set<int> sockets;
  for (const int cpu : seen.threads) add(mine, cpu);
  for (const kernels::ThreadPlace& place : seen.places) {
    add(firsts, place.first_of_core);
    add(caches, place.first_of_l3);
    sockets.insert(place.socket);
  }
  RankArea& own = area(rank);
  store(own.cores, mine);
  store(own.whole_cores, firsts);
  store(own.caches, caches);
  own.socket.store(sockets.size() == 1 ? *sockets.begin() : -1, std::memory_order_relaxed);
  own.granted.store(kernels::granted(seen.quota), std::memory_order_relaxed);
  own.group.store(seen.quota.group, std::memory_order_relaxed);
  own.l2_bytes.store(seen.l2_bytes, std::memory_order_relaxed);
  own.l3_bytes.store(seen.l3_bytes, std::memory_order_relaxed);
}

int Segment::cores() const { return together(&RankArea::cores); }

int Segment::in_all(Cpus RankArea::*set) const {
  CpuWords all = {};
  for (Rank r = 0; r < shape_.ranks; ++r) unite(all, area(r).*set);
  return count(all);
}

// Counts at most as many CPUs in each control group as the group is granted: the CPUs of one of its ranks may be fewer
// than that, while those of all of them are more. Ranks that see each other's memory are mostly in one group.
int Segment::together(Cpus RankArea::*set) const {
  std::map<std::uint64_t, Granted> groups;
  for (Rank r = 0; r < shape_.ranks; ++r) {
    const RankArea& rank = area(r);
    Granted& shared = groups[rank.group.load(std::memory_order_relaxed)];
    unite(shared.cpus, rank.*set);
    if (const int granted = rank.granted.load(std::memory_order_relaxed); granted != 0)
      shared.busy = std::min(shared.busy, granted);
  }
  int busy = 0;
  for (const auto& [group, shared] : groups) busy += std::min(count(shared.cpus), shared.busy);
  return std::min(in_all(set), busy);
}

// Counts at most one L3 cache for each rank, as a rank uses the caches of one core at a time, whatever cores it may run
// on.
RankCores Segment::places() const {
  const int caches = std::min(in_all(&RankArea::caches), static_cast<int>(shape_.ranks));
  RankCores places{.cores = together(&RankArea::whole_cores),
                   .threads = cores(),
                   .l2_bytes = area(0).l2_bytes.load(std::memory_order_relaxed),
                   .l3_bytes = area(0).l3_bytes.load(std::memory_order_relaxed) * static_cast<std::size_t>(caches),
                   .l3_caches = caches};
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
    text::refuse("a post of {} bytes: expected at most {}", bytes.size(), most_notice_bytes(shape_.ranks));
  words[0] = bytes.size();
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(words)).begin() + sizeof words[0]);  // may be empty
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
  if (words[0] > most) text::refuse("the board of rank {} has {} bytes: expected at most {}", rank, words[0], most);
  const auto* const begin = reinterpret_cast<const std::byte*>(words.data() + 1);
  return {begin, begin + words[0]};
}

std::vector<Rank> Segment::missing() const {
  std::vector<Rank> ranks;
  for (Rank r = 0; r < shape_.ranks; ++r)
    if (area(r).pid.load(std::memory_order_acquire) == 0) ranks.push_back(r);
  return ranks;
}

JoinOutcome Segment::settle(JoinOutcome to) const {
  JoinOutcome found = JoinOutcome::open;
  return header().outcome.compare_exchange_strong(found, to) ? to : found;
}

}  // namespace trellis::ccl
