// Transport between threads of one process: the segment is on the heap, and ranks read each other's memory directly.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "ccl/transports/registry.h"
#include "ccl/transports/segment/await_joined.h"
#include "device/fork_safe_singleton.h"
#include "text/refuse.h"

namespace trellis::ccl {
namespace {

constexpr std::size_t slot_bytes = std::size_t{64} << 10;
constexpr std::size_t least_direct = 512;

// The segment's memory; lives until its last rank releases it.
class Heap {
 public:
  explicit Heap(const SegmentShape& shape) : bytes_(shape.bytes()) {
    base_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    Segment::begin(base_, shape);
  }
  ~Heap() { munmap(base_, bytes_); }
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  void* base() const { return base_; }

  // Counts pages that were touched.
  std::size_t bytes_in_use() const {
    constexpr std::size_t page = 4096, pages = 4096;  // pages examined per call
    unsigned char seen[pages];
    std::size_t sum = 0;
    for (std::size_t at = 0; at < bytes_; at += page * pages) {
      const std::size_t part = std::min(page * pages, bytes_ - at);
      if (mincore(static_cast<std::byte*>(base_) + at, part, seen) != 0) continue;
      for (std::size_t i = 0; i < (part + page - 1) / page; ++i) sum += (seen[i] & 1) * page;
    }
    return sum;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void* base_;
  std::size_t bytes_;
};

// Exposed memory, all of which the other threads can read without preparation.
class ReadableWhole : public Exposed {
 public:
  explicit ReadableWhole(std::size_t bytes) : bytes_(bytes) {}
  std::size_t readable_bytes() const override { return bytes_; }

 private:
  std::size_t bytes_;
};

class SameProcess : public PeerMemoryAccess {
 public:
  SameProcess(std::shared_ptr<Heap> heap, Rank ranks) : heap_(std::move(heap)), ranks_(ranks) {}
  Offer offer(Rank, const std::byte* data, std::size_t bytes) override {
    if (bytes < least_direct) return {.bytes = bytes};
    return {Place{PayloadLocation::address, reinterpret_cast<std::uint64_t>(data)}, bytes};
  }
  std::size_t readable(Rank, const std::byte*, std::size_t bytes, std::size_t message) override {
    return message < least_direct ? 0 : bytes;
  }
  std::unique_ptr<Exposed> expose(void*, std::size_t bytes) override { return std::make_unique<ReadableWhole>(bytes); }
  const std::byte* see(Rank, const Place& place, std::size_t) override {
    return reinterpret_cast<const std::byte*>(place.where);
  }
  void fetch(Rank, const Place& place, std::size_t offset, std::byte* into, std::size_t bytes) override {
    std::memcpy(into, reinterpret_cast<const std::byte*>(place.where) + offset, bytes);
  }
  bool shares_mappings() const override { return true; }
  bool alive(Rank) override { return true; }
  std::size_t memory_bytes() const override { return heap_->bytes_in_use() / static_cast<std::size_t>(ranks_); }

 private:
  std::shared_ptr<Heap> heap_;
  const Rank ranks_;
};

// What the store carries: the heap's number in its process.
struct Handed {
  std::int64_t pid;
  std::uint64_t number;
};

class Heaps {
 public:
  std::uint64_t add(const std::shared_ptr<Heap>& heap) {
    const std::lock_guard lock(mutex_);
    std::erase_if(known_, [](const auto& one) { return one.second.expired(); });
    known_[++last_] = heap;
    return last_;
  }
  std::shared_ptr<Heap> find(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(number);
    const auto heap = found == known_.end() ? nullptr : found->second.lock();
    if (!heap) throw std::invalid_argument("loopback: the communicator named in the store no longer exists");
    return heap;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<Heap>> known_;
  std::uint64_t last_ = 0;
};

Heaps& heaps() {
  return device::of_this_process([] { return new Heaps; });
}

std::unique_ptr<Transport> open_loopback(std::shared_ptr<Store> store, const JoinOptions& j) {
  std::shared_ptr<Heap> heap;
  if (j.rank == 0) {
    heap = std::make_shared<Heap>(SegmentShape{j.ranks, channel_lanes + 1, slot_bytes, round_bytes_for(j.config)});
    const Handed handed{getpid(), heaps().add(heap)};
    store->set("loopback", std::as_bytes(std::span(&handed, 1)));
  } else {
    const Bytes bytes = store->get("loopback", j.deadline);
    Handed handed;
    if (bytes.size() != sizeof handed) throw std::invalid_argument("loopback: the store holds something else");
    std::memcpy(&handed, bytes.data(), sizeof handed);
    if (handed.pid != getpid())
      text::refuse("loopback: rank 0 is process {} and rank {} is process {}: expected threads of one process",
                   handed.pid, j.rank, getpid());
    heap = heaps().find(handed.number);
  }
  const Segment segment(heap->base(), Segment::read(heap->base(), heap->bytes()));
  segment.claim(j.rank);
  segment.show_cores(j.rank);
  auto reach = std::make_unique<SameProcess>(heap, j.ranks);
  join_all(segment, j, *reach);
  return std::make_unique<SharedTransport>("loopback", segment, j.rank, std::move(reach));
}

const RegisteredTransport registered({.name = "loopback",
                                      .summary = "threads of one process, through its memory",
                                      .reach = TransportFactory::Reach::process,
                                      .open = open_loopback});

}  // namespace
}  // namespace trellis::ccl
