// The measurements of one size, and how they are reported: tables, JSON, CSV, plot.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "measure/measure.h"

namespace trellis::tools {

struct BenchResult {
  schedule::Collective collective = schedule::Collective::all_reduce;
  std::string op;  // as the user typed it
  ccl::Rank ranks = 1;
  std::uint64_t bytes = 0, count = 0;               // bytes of the larger buffer; count as in the call
  std::uint64_t input_bytes = 0, output_bytes = 0;  // of all ranks together
  kernels::DType type = kernels::DType::f32;
  kernels::Reduction reduction = kernels::Reduction::sum;
  ccl::Rank root = -1;  // -1: none
  bool in_place = false;
  int streams = 1;
  measure::BenchMeasurement measured;
  double low_us = 0, high_us = 0;  // the interval of a simulated time; 0: not asked for

  double algbw_GBps(double us) const;  // for this time
  double busbw_GBps(double us) const;
};

// A result for these calls (one of each rank), without measurements yet.
BenchResult result_of(const measure::BenchSettings&, const std::vector<ccl::Call>&, bool in_place);

// A number in at most `width` characters where possible: with two decimals, one, none, then with an exponent.
std::string fitted(double value, int width);

// The table's parts, in the style of the settings. A row of nccl-tests shows both results, a row of nccom-test the
// first; null: not measured.
std::string bench_heading(const measure::BenchSettings&, const std::vector<std::string>& ranks);
std::string bench_row(const measure::BenchSettings&, const BenchResult* out_of_place, const BenchResult* in_place);

struct BenchTotals {
  std::uint64_t wrong = 0;
  std::size_t checked = 0;  // rows whose results were checked
  double busbw_sum = 0;
  std::size_t rows = 0;
  std::uint64_t memory_bytes = 0;         // of rank 0's communicators
  std::set<std::string> not_native = {};  // why the device's own collectives were not used
};
std::string bench_footer(const measure::BenchSettings&, const BenchTotals&);

// `interrupted`: how much is there, where the user interrupted it.
std::string bench_json(const measure::BenchSettings&, const std::vector<BenchResult>&,
                       const std::string& interrupted = "");
std::string bench_csv(const measure::BenchSettings&, const std::vector<BenchResult>&);

// Time and bus bandwidth against size, both axes logarithmic, as SVG.
std::string bench_plot(const std::vector<BenchResult>&);

}  // namespace trellis::tools
