// Times one operation on all ranks, and checks what it gives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/bench_buffers.h"
#include "tools/bench_pattern.h"
#include "tools/bench_ranks.h"
#include "tools/bench_settings.h"

namespace trellis::tools {

// What a rank measures with: a communicator to agree with the others, and one for each stream.
struct Bench {
  Bench(const BenchSettings&, const Crew&);
  ccl::Rank rank() const { return control->rank(); }
  ccl::Rank ranks() const { return control->ranks(); }
  void abort();

  // Each rank's value, made one, on all ranks.
  std::vector<double> merged(std::vector<double> mine, Merge);
  std::uint64_t sum(std::uint64_t mine);

  const BenchSettings& settings;
  std::unique_ptr<ccl::Communicator> control;
  std::vector<std::unique_ptr<ccl::Communicator>> work;
  std::vector<std::unique_ptr<device::Stream>> streams;  // none where there is one communicator
  double clock_us = 0;                                   // that reading the clock takes
};

// What is measured: the calls of all ranks, and this rank's buffers for each stream.
struct Subject {
  const std::vector<ccl::Call>& calls;
  const std::vector<std::unique_ptr<BenchBuffers>>& buffers;
  bool in_place = false;
};

struct Measured {
  std::vector<double> us;  // of each iteration, for one operation
  bool checked = false;
  std::uint64_t wrong = 0;  // on all ranks, over all passes
  std::string algorithm;
};

// Up to so many bytes, iterations follow each other as the operations of a program do, and all that a user does between
// them counts; above, ranks meet before each iteration, after having written their input and read their output.
inline constexpr std::uint64_t back_to_back_bytes = 4096;

// All ranks call it alike. None: no algorithm serves the operation this way.
std::unique_ptr<Measured> measure(Bench&, const Subject&);

struct Statistics {
  double average = 0, least = 0, most = 0, deviation = 0;
  std::vector<double> sorted;
  double percentile(double p) const;  // 0 to 100
};
Statistics statistics_of(std::vector<double>);

}  // namespace trellis::tools
