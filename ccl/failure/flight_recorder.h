// Flight recorder: a ring buffer of a communicator's last operations, for diagnosis after a failure.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ccl/call.h"
#include "ccl/failure/rank_dump.h"
#include "ccl/plan/selection_table.h"

namespace trellis::ccl {

// Time stamps from the CPU's counter, which is cheap to read; converted to nanoseconds only in a dump.
class TimestampClock {
 public:
  TimestampClock();
  static std::uint64_t now() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
#endif
  }
  std::int64_t since_epoch_ns(std::uint64_t moment) const;

 private:
  std::uint64_t first_;
  std::int64_t first_ns_;
  Clock::time_point first_time_;
};

struct FlightRecorderEntry {
  std::uint64_t operation = 0;  // number of the collective, the same on all ranks; 0: none
  std::uint64_t count = 0;
  std::uint64_t points = 0;                 // number of sends and receives, if it consists of these
  std::uint64_t began = 0, ended = 0;       // in TimestampClock; ended 0: still running
  const AlgorithmConfig* config = nullptr;  // lives as long as the communicator
  std::uint64_t schedule = 0;               // a hash of the schedule, which the marks of its messages cover
  const std::string* not_native = nullptr;  // why not, if the device has collectives; lives as long as the communicator
  const char* division = nullptr;           // "split" or "shrink", if it is not an operation
  Rank root = 0, peer = 0;
  Collective collective = {};
  kernels::DType type = {};
  kernels::Reduction op = {};
  bool native = false;  // the device's own collective, without an algorithm of ours
};

// An entry of a ring that one thread writes while others may read it. Its version is odd while it is written.
class SharedRecorderEntry {
 public:
  // The fence keeps the words after the odd version: a reader that sees one of them finds that the version changed.
  void write(std::uint64_t number, const FlightRecorderEntry& entry) {
    const auto values = std::bit_cast<std::array<std::uint64_t, words>>(entry);
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    number_.store(number, std::memory_order_relaxed);
    for (std::size_t i = 0; i < words; ++i) words_[i].store(values[i], std::memory_order_relaxed);
    version_.store(version + 2, std::memory_order_release);
  }
  void end(std::uint64_t moment) { words_[ended_word].store(moment, std::memory_order_release); }
  // None: an entry with another number is here, or it is being written.
  std::optional<FlightRecorderEntry> read(std::uint64_t number) const;

 private:
  static constexpr std::size_t words = sizeof(FlightRecorderEntry) / sizeof(std::uint64_t);
  static constexpr std::size_t ended_word = offsetof(FlightRecorderEntry, ended) / sizeof(std::uint64_t);
  std::atomic<std::uint64_t> version_ = 0, number_ = ~std::uint64_t{0};
  std::array<std::atomic<std::uint64_t>, words> words_ = {};
};

// One thread at a time writes; any thread may read meanwhile, and never finds an entry that is half written.
class FlightRecorder {
 public:
  static constexpr std::size_t kept = 1024;

  FlightRecorder() : ring_(kept) {}
  // The next entry, to be filled in and then shown: until then others do not see it.
  FlightRecorderEntry& begin() {
    begun_.store(begun_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    open_.began = TimestampClock::now();
    open_.ended = 0;
    return open_;
  }
  FlightRecorderEntry& current() { return open_; }  // the last one that began; to be shown again after a change
  void show() { last().write(begun_.load(std::memory_order_relaxed) - 1, open_); }
  void end() {
    if (begun_.load(std::memory_order_relaxed) != 0) last().end(TimestampClock::now());
  }

  // None: it was overwritten, or has not begun.
  std::optional<FlightRecorderEntry> collective(std::uint64_t operation) const;
  // The last entry that had started by that moment; none: none had, or it was overwritten.
  std::optional<FlightRecorderEntry> last_at(std::uint64_t moment) const;
  bool tells_of(std::uint64_t moment) const;  // it still has everything from before that moment that the dump needs
  // The dump at that moment, as JSON in the form of PyTorch's flight recorder with a part `trellis`. The entries are
  // the recorder's own, not those of the RankDump.
  std::string dump(const RankDump&, std::uint64_t moment, std::chrono::milliseconds timeout) const;
  std::size_t memory_bytes() const { return ring_.size() * sizeof(SharedRecorderEntry); }

 private:
  SharedRecorderEntry& last() { return ring_[(begun_.load(std::memory_order_relaxed) - 1) % kept]; }
  std::uint64_t oldest() const;  // number of the oldest entry for which the ring has a place
  std::optional<FlightRecorderEntry> entry(std::uint64_t number) const { return ring_[number % kept].read(number); }

  // Its pages are touched at construction. Otherwise every 64th of the first operations would take a page fault of some
  // microseconds, which would be their 99th percentile.
  std::vector<SharedRecorderEntry> ring_;
  std::atomic<std::uint64_t> begun_ = 0;
  FlightRecorderEntry open_ = {};  // the writer's own
  TimestampClock moments_;
};

}  // namespace trellis::ccl
