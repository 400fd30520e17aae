// What a benchmark is to do, after its flags are read.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "ccl/communicator.h"
#include "measure/bench_names.h"

namespace trellis::measure {

// How the times of all ranks for one iteration become one time.
enum class TimeMerge : std::uint8_t { rank_0, mean, fastest, slowest };

struct BenchSettings {
  BenchStyle style = BenchStyle::nccom;
  BenchOp op;

  int ranks = 0;  // 0: one for each core, or as many as were launched
  bool threads = false, pin = true;
  int streams = 1;
  std::string algorithm, transport, provider;
  std::string device = "host";  // as device::open takes it; each rank has a core of its own
  std::chrono::milliseconds timeout{30'000};

  std::vector<std::uint64_t> sizes;  // of the larger buffer; ascending
  std::uint64_t most_bytes = 0;      // the largest size asked for; the last size may be less
  std::string step_text;             // "step: 2(factor)"
  std::vector<kernels::DType> types;
  std::vector<kernels::Reduction> reductions;
  std::vector<ccl::Rank> roots;  // empty: every rank in turn
  std::vector<schedule::Pair> pairs;
  std::vector<std::vector<double>> weights;  // of blocks in the _v collectives: one row, or one for each sender

  int iterations = 0;  // 0: at least least_iterations, and more for short operations
  int warm_ups = 5;
  int grouped = 1;   // operations in a group
  int repeated = 1;  // groups that are timed as one
  int cycles = 1;    // 0: repeat forever
  TimeMerge merge = TimeMerge::slowest;
  bool untouched = false;
  bool cpu_time = false;

  int check_passes = 0;
  bool all_ones = false;
  std::uint64_t seed = 1;
  std::uint64_t interpret_up_to = 64 << 10;  // bytes

  bool in_place = true;        // measure in place, too
  bool device_memory = false;  // use Device::allocate, whose memory peers can read directly
  int unaligned = 0;           // elements past an aligned address at which buffers begin

  std::string era;  // era of a simulated machine's software; empty: its default
  std::vector<std::string> what_if;
  bool simulated = false;  // times are a model's: one for each row of the table, without a spread
  bool interval = false;   // report the interval of a simulated time

  bool per_iteration = false, timestamps = false, memory_report = false, show_algorithm = false, show_sizes = false;
  int skipped = 0;                 // iterations that per_iteration leaves out
  std::vector<std::string> stats;  // "avg", "p50"
  std::string json, csv, plot;
};

inline constexpr int least_iterations = 20, most_iterations = 1000;

// The call of each rank for so many bytes of the larger buffer. In nccl style, blocks are multiples of 16 bytes.
std::vector<ccl::Call> calls_for(const BenchSettings&, std::uint64_t bytes, kernels::DType, kernels::Reduction,
                                 ccl::Rank root, ccl::Rank ranks);

std::uint64_t larger_buffer_bytes(const std::vector<ccl::Call>&);  // over all ranks

}  // namespace trellis::measure
