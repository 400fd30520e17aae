// The last operations of a communicator, kept in a ring so that one can see afterwards what a rank was in.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ccl/communicator.h"
#include "ccl/selector.h"

namespace trellis::ccl {

// Moments are counted by the CPU's own clock, which is cheap to read, and made nanoseconds only in a dump.
class Moments {
 public:
  Moments();
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

struct Recorded {
  std::uint64_t operation = 0;  // as all ranks count collectives; 0: none
  std::uint64_t count = 0;
  std::uint64_t points = 0;            // sends and receives, when it consists of these
  std::uint64_t began = 0, ended = 0;  // moments; ended 0: under way
  const Choice* choice = nullptr;      // lives as long as the communicator
  Rank root = 0, peer = 0;
  Collective collective = {};
  kernels::DType type = {};
  kernels::Reduction op = {};
};

class FlightRecorder {
 public:
  static constexpr std::size_t kept = 1024;

  FlightRecorder() { ring_.reserve(kept); }
  Recorded& begin() {
    Recorded& r = begun_ < kept ? ring_.emplace_back() : ring_[begun_ % kept];
    ++begun_;
    r.began = Moments::now();
    r.ended = 0;
    return r;
  }
  void end() {
    if (begun_ != 0) ring_[(begun_ - 1) % kept].ended = Moments::now();
  }

  struct Whose {
    Rank rank = 0, ranks = 1;
    std::string communicator = {};  // its identity
    std::string error = {};         // what ended it
    Rank waits_for = -1;
    std::int32_t step = -1;
    std::int64_t timeout_ms = 0;
  };
  // JSON, in the form of PyTorch's flight recorder, with a part of our own.
  std::string dump(const Whose&) const;
  std::size_t memory_bytes() const { return ring_.size() * sizeof(Recorded); }

 private:
  std::vector<Recorded> ring_;  // room for all that is kept, so that nothing moves; untouched until it is used
  std::uint64_t begun_ = 0;
  Moments moments_;
};

}  // namespace trellis::ccl
