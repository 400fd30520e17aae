// Flight recorder: a ring buffer of a communicator's last operations, for diagnosis after a failure.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "ccl/call.h"
#include "ccl/failure/rank_dump.h"
#include "ccl/plan/selection_table.h"
#include "ccl/timestamp_clock.h"

namespace trellis::ccl {

// What one operation was. The fields of an entry that threads share are atomic.
template <template <class> class Field>
struct RecorderFields {
  Field<std::uint64_t> operation{};  // number of the collective, the same on all ranks; 0: none
  Field<std::uint64_t> count{};
  Field<std::uint64_t> points{};           // number of sends and receives, if it consists of these
  Field<std::uint64_t> began{}, ended{};   // in TimestampClock; ended 0: still running
  Field<const AlgorithmConfig*> config{};  // lives as long as the communicator
  Field<std::uint64_t> schedule{};         // a hash of the schedule, which the marks of its messages cover
  Field<const std::string*> not_native{};  // why not, if the device has collectives; lives as long as the communicator
  Field<const char*> division{};           // "split" or "shrink", if it is not an operation
  Field<Rank> root{}, peer{};
  Field<Collective> collective{};
  Field<kernels::DType> type{};
  Field<kernels::Reduction> op{};
  Field<bool> native{};  // the device's own collective, without an algorithm of ours
};
using FlightRecorderEntry = RecorderFields<std::type_identity_t>;

// An entry of a ring that one thread writes while others may read it. Its version is odd while it is written.
class SharedRecorderEntry {
 public:
  // The fence keeps the fields after the odd version: a reader that sees one of them finds that the version changed.
  void write(std::uint64_t number, const FlightRecorderEntry& entry) {
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    number_.store(number, std::memory_order_relaxed);
    each(fields_, entry, [](auto& shared, const auto& value) { shared.store(value, std::memory_order_relaxed); });
    version_.store(version + 2, std::memory_order_release);
  }
  void end(std::uint64_t moment) { fields_.ended.store(moment, std::memory_order_release); }
  // None: an entry with another number is here, or it is being written.
  std::optional<FlightRecorderEntry> read(std::uint64_t number) const;

 private:
  // Field by field: a wider load would wait for the stores of fields that were just written.
  template <class Shared, class Entry, class Copy>
  static void each(Shared& s, Entry& e, const Copy& copy) {
    copy(s.operation, e.operation), copy(s.count, e.count), copy(s.points, e.points), copy(s.began, e.began);
    copy(s.ended, e.ended), copy(s.config, e.config), copy(s.schedule, e.schedule), copy(s.not_native, e.not_native);
    copy(s.division, e.division), copy(s.root, e.root), copy(s.peer, e.peer), copy(s.collective, e.collective);
    copy(s.type, e.type), copy(s.op, e.op), copy(s.native, e.native);
  }

  std::atomic<std::uint64_t> version_ = 0, number_ = ~std::uint64_t{0};
  RecorderFields<std::atomic> fields_;
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
