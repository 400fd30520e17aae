// Benchmarks event queues in the hold model: with a fixed number of pending events, take the earliest and schedule a
// new one at a random later time. First comes MU, the machine unit that simulators are compared in: the time of a radix
// heap for a million such operations with 100,000 pending.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <bit>
#include <queue>
#include <vector>

#include "sim/time/event_queue.h"

namespace {

using namespace trellis::sim;

struct Event {
  std::uint32_t kind = 0, unit = 0;
  std::uint64_t what = 0;
};

// Counter-based, so that it costs every queue the same few cycles.
class Random {
 public:
  std::uint64_t operator()() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    return (z ^ (z >> 27)) >> 16;
  }

 private:
  std::uint64_t state_ = 1;
};

struct Node {
  Time time = 0;
  std::uint64_t order = 0;
  Event event;
  // Reversed, since std heaps keep the greatest on top.
  bool operator<(const Node& other) const { return time != other.time ? time > other.time : order > other.order; }
};

class StdQueue {
 public:
  void push(Time time, const Event& event) { queue_.push({time, order_++, event}); }
  Time now() const { return now_; }
  Event pop() {
    const Node first = queue_.top();
    queue_.pop();
    now_ = first.time;
    return first.event;
  }

 private:
  std::priority_queue<Node> queue_;
  std::uint64_t order_ = 0;
  Time now_ = 0;
};

// The heap moves keys only; events stay in place in a pool.
class PooledQueue {
 public:
  void push(Time time, const Event& event) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(pool_.size()));
      pool_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    pool_[slot] = event;
    queue_.push({time, order_++, slot});
  }
  Time now() const { return now_; }
  Event pop() {
    const Key first = queue_.top();
    queue_.pop();
    free_.push_back(first.slot);
    now_ = first.time;
    return pool_[first.slot];
  }

 private:
  struct Key {
    Time time = 0;
    std::uint32_t order = 0, slot = 0;
    bool operator<(const Key& other) const { return time != other.time ? time > other.time : order > other.order; }
  };
  std::priority_queue<Key> queue_;
  std::vector<Event> pool_;
  std::vector<std::uint32_t> free_;
  std::uint32_t order_ = 0;
  Time now_ = 0;
};

class FourHeap {
 public:
  void push(Time time, const Event& event) {
    std::size_t at = heap_.size();
    const Node node{time, order_++, event};
    heap_.push_back(node);
    for (; at > 0 && heap_[(at - 1) / 4] < node; at = (at - 1) / 4) heap_[at] = heap_[(at - 1) / 4];
    heap_[at] = node;
  }
  Time now() const { return now_; }
  Event pop() {
    const Node first = heap_.front(), last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    now_ = first.time;
    return first.event;
  }

 private:
  void sink(const Node& node) {
    std::size_t at = 0;
    for (std::size_t child = 1; child < heap_.size(); child = 4 * at + 1) {
      const std::size_t end = std::min(child + 4, heap_.size());
      std::size_t least = child;
      for (std::size_t other = child + 1; other < end; ++other)
        if (heap_[least] < heap_[other]) least = other;
      if (!(node < heap_[least])) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = node;
  }
  std::vector<Node> heap_;
  std::uint64_t order_ = 0;
  Time now_ = 0;
};

// An event lies in the bucket of the highest bit in which its time differs from now. Taking the earliest redistributes
// the lowest bucket over the buckets below it.
class RadixHeap {
 public:
  void push(Time time, const Event& event) { buckets_[bucket(time)].push_back({time, event}); }
  Time now() const { return now_; }
  Event pop() {
    if (head_ == buckets_[0].size()) refill();
    return buckets_[0][head_++].event;
  }

 private:
  struct Entry {
    Time time = 0;
    Event event;
  };
  std::size_t bucket(Time time) const {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(time ^ now_)));
  }
  void refill() {
    buckets_[0].clear();
    head_ = 0;
    std::size_t lowest = 1;
    while (buckets_[lowest].empty()) ++lowest;
    std::vector<Entry>& from = buckets_[lowest];
    now_ = from.front().time;
    for (const Entry& e : from) now_ = std::min(now_, e.time);
    for (const Entry& e : from) buckets_[bucket(e.time)].push_back(e);
    from.clear();
  }
  std::array<std::vector<Entry>, 65> buckets_;
  std::size_t head_ = 0;
  Time now_ = 0;
};

template <class Queue>
class Hold {
 public:
  explicit Hold(std::int64_t pending) {
    for (std::int64_t i = 0; i < pending; ++i) ask();
    run(2 * pending);  // past the start, when all events are new
  }
  void run(std::int64_t events) {
    for (; events > 0; --events) {
      benchmark::DoNotOptimize(queue_.pop());
      ask();
    }
  }

 private:
  // Up to a millisecond later.
  void ask() { queue_.push(queue_.now() + static_cast<Time>(random_() % (1U << 30)), Event{1, 2, 3}); }

  Queue queue_;
  Random random_;
};

constexpr std::int64_t batch = 1'000'000;

void machine_unit(benchmark::State& state) {
  Hold<RadixHeap> hold(100'000);
  for (auto _ : state) hold.run(batch);
  state.counters["MU_ms"] =
      benchmark::Counter(1e-3, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

template <class Queue>
void hold(benchmark::State& state) {
  Hold<Queue> hold(state.range(0));
  for (auto _ : state) hold.run(batch);
  state.counters["ns_per_event"] = benchmark::Counter(
      static_cast<double>(batch) * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void sizes(benchmark::internal::Benchmark* b) {
  for (const std::int64_t pending : {16, 1'000, 100'000, 1'000'000}) b->Arg(pending)->Unit(benchmark::kMillisecond);
}

BENCHMARK(machine_unit)->Unit(benchmark::kMillisecond);
BENCHMARK(hold<EventQueue<Event>>)->Apply(sizes);
BENCHMARK(hold<StdQueue>)->Apply(sizes);
BENCHMARK(hold<PooledQueue>)->Apply(sizes);
BENCHMARK(hold<FourHeap>)->Apply(sizes);
BENCHMARK(hold<RadixHeap>)->Apply(sizes);

}  // namespace
