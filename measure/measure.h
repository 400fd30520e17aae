// Times one operation on all ranks, and checks its results.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launch/run_on_ranks.h"
#include "measure/buffers.h"
#include "measure/data_pattern.h"
#include "measure/settings.h"

namespace trellis::measure {

// What a rank measures with: a control communicator to agree with the other ranks, and one communicator for each
// stream.
struct BenchContext {
  BenchContext(const BenchSettings&, const launch::RankContext&);
  ccl::Rank rank() const { return control->rank(); }
  ccl::Rank ranks() const { return control->ranks(); }
  void abort();

  // Merges the ranks' values into one, the same on all ranks.
  std::vector<double> merged(std::vector<double> mine, TimeMerge);
  std::uint64_t sum(std::uint64_t mine);

  double now_us() const;  // by the clock that the settings ask for; a simulated device has its own

  const BenchSettings& settings;
  std::shared_ptr<device::Device> device;
  std::unique_ptr<ccl::Communicator> control;  // on the host
  std::vector<std::unique_ptr<ccl::Communicator>> work;
  std::vector<std::unique_ptr<device::Stream>> streams;  // empty when there is one communicator
  double clock_us = 0;                                   // the time that reading the clock takes

 private:
  bool simulated_ = false;
};

// What is measured: the calls of all ranks, and this rank's buffers for each stream.
struct BenchCase {
  const std::vector<ccl::Call>& calls;
  const std::vector<std::unique_ptr<BenchBuffers>>& buffers;
  bool in_place = false;
};

struct BenchMeasurement {
  std::vector<double> us;  // of one operation, for each iteration
  bool checked = false;
  std::uint64_t wrong = 0;  // wrong elements, on all ranks, over all passes
  std::string algorithm;    // "native": the device does it by itself
  std::string not_native;   // why the device does not, if it has collectives
};

// Up to this size, iterations follow each other as in a program, and their time includes reading the last output and
// writing the next input. Above it, ranks do these first and wait at a barrier, and only the operation is timed.
inline constexpr std::uint64_t back_to_back_bytes = 4096;

// Collective: all ranks call it alike. Null: no algorithm serves the operation in place.
std::unique_ptr<BenchMeasurement> measure(BenchContext&, const BenchCase&);

struct Statistics {
  double average = 0, least = 0, most = 0, deviation = 0;
  std::vector<double> sorted;
  double percentile(double p) const;  // 0 to 100
};
Statistics statistics_of(std::vector<double>);

}  // namespace trellis::measure
