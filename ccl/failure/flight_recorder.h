// Flight recorder: a ring buffer of a communicator's last operations, for diagnosis after a failure.
#pragma once

#include <array>
#include <cstdint>
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
  bool native = false;                      // the device's own collective, without an algorithm of ours
  const std::string* not_native = nullptr;  // why not, if the device has collectives; lives as long as the communicator
  const char* division = nullptr;           // "split" or "shrink", if it is not an operation
  Rank root = 0, peer = 0;
  Collective collective = {};
  kernels::DType type = {};
  kernels::Reduction op = {};
};

class FlightRecorder {
 public:
  static constexpr std::size_t kept = 1024;

  FlightRecorder() : ring_(kept) {}
  FlightRecorderEntry& begin() {
    FlightRecorderEntry& r = ring_[begun_ % kept];
    ++begun_;
    r.began = TimestampClock::now();
    r.ended = 0;
    return r;
  }
  FlightRecorderEntry& current() { return ring_[(begun_ - 1) % kept]; }  // the last one that began
  void end() {
    if (begun_ != 0) ring_[(begun_ - 1) % kept].ended = TimestampClock::now();
  }

  const FlightRecorderEntry* collective(std::uint64_t operation) const;  // null: it was overwritten, or has not begun
  // The last entry that had started by that moment; null: none had, or it was overwritten.
  const FlightRecorderEntry* last_at(std::uint64_t moment) const;
  // True if the recorder still has everything from before that moment that the dump needs.
  bool tells_of(std::uint64_t moment) const { return begun_ <= kept || ring_[begun_ % kept].began <= moment; }
  // The dump at that moment, as JSON in the form of PyTorch's flight recorder with a part `trellis`. The entries are
  // the recorder's own, not those of the RankDump.
  std::string dump(const RankDump&, std::uint64_t moment, std::chrono::milliseconds timeout) const;
  std::size_t memory_bytes() const { return ring_.size() * sizeof(FlightRecorderEntry); }

 private:
  // Its pages are touched at construction. Otherwise every 64th of the first operations would take a page fault of some
  // microseconds, which would be their 99th percentile.
  std::vector<FlightRecorderEntry> ring_;
  std::uint64_t begun_ = 0;
  TimestampClock moments_;
};

}  // namespace trellis::ccl
