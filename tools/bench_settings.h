// What a benchmark is to do, once its flags have been read: the same whosever grammar they were given in.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "ccl/communicator.h"
#include "tools/bench_words.h"

namespace trellis::tools {

// How the times that ranks took for one iteration become one.
enum class Merge : std::uint8_t { rank_0, mean, fastest, slowest };

struct BenchSettings {
  Style style = Style::nccom;
  BenchOp op;

  int ranks = 0;  // 0: a core each, or as many as were launched
  bool threads = false, pin = true;
  int streams = 1;
  std::string algorithm;
  std::chrono::milliseconds timeout{30'000};

  std::vector<std::uint64_t> sizes;  // of the larger buffer; rising
  std::uint64_t most_bytes = 0;      // that was asked for; the last size may be less
  std::string step_text;             // "step: 2(factor)"
  std::vector<kernels::DType> types;
  std::vector<kernels::Reduction> reductions;
  std::vector<ccl::Rank> roots;  // empty: every rank in turn
  std::vector<schedule::Pair> pairs;
  std::vector<std::vector<double>> weights;  // of blocks in the _v forms: one row, or one for each sender

  int iterations = 0;  // 0: at least least_iterations, and more of what is short
  int warm_ups = 5;
  int grouped = 1;   // operations in a group
  int repeated = 1;  // groups that are timed as one
  int cycles = 1;    // 0: for ever
  Merge merge = Merge::slowest;
  bool untouched = false;
  bool cpu_time = false;

  int check_passes = 0;
  bool all_ones = false;
  std::uint64_t seed = 1;
  std::uint64_t interpret_up_to = 64 << 10;  // bytes

  bool in_place = true;        // measured as well
  bool device_memory = false;  // from Device::allocate, which peers can read directly
  int unaligned = 0;           // elements that buffers begin past an aligned address

  std::string era;  // of a simulated machine's software; empty: its usual one
  std::vector<std::string> what_if;
  bool interval = false;  // between what a simulated time lies

  bool per_iteration = false, timestamps = false, memory_report = false, show_algorithm = false, show_sizes = false;
  int skipped = 0;                 // iterations that per_iteration leaves out
  std::vector<std::string> stats;  // "avg", "p50"
  std::string json, csv, plot;
};

inline constexpr int least_iterations = 20, most_iterations = 1000;

// What each rank calls for so many bytes of the larger buffer. Blocks of the nccl style are multiples of 16 bytes.
std::vector<ccl::Call> calls_for(const BenchSettings&, std::uint64_t bytes, kernels::DType, kernels::Reduction,
                                 ccl::Rank root, ccl::Rank ranks);

std::uint64_t larger_buffer_bytes(const std::vector<ccl::Call>&);  // over all ranks
double bus_factor(schedule::Collective, ccl::Rank ranks);          // of busbw to algbw

}  // namespace trellis::tools
