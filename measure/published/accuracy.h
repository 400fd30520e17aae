// How answers agree with their records: the error, whether the interval holds the measured value, and how wide it is.
// The fit can be repeated with one configuration left out, which tells how good answers are for configurations that
// have no records.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "measure/published/record.h"

namespace trellis::measure {

// What is fitted to all records: the launch times, in seconds, and the model's own error.
struct FittedParameters {
  std::map<std::string, LaunchOverhead> launches;
  std::map<std::string, sim::ModelErrorRange> errors;  // by kind
};

// A record with its answer. Without a fit, the launch and the errors are those of the data files.
struct ComparedRecord {
  const Record* record = nullptr;
  RecordAnswer answer = {};
  bool fitted = false;  // a figure of the hardware was fitted to this very record

  std::string kind() const { return answer.kind.empty() ? record->kind() : answer.kind; }
  double simulated(const FittedParameters* = nullptr) const;
  double error(const FittedParameters* fit = nullptr) const { return simulated(fit) / record->value - 1; }
  sim::ValueRange interval(const FittedParameters* = nullptr) const;
  bool inside(const FittedParameters* = nullptr) const;
  double width(const FittedParameters* = nullptr) const;  // the interval is its geometric middle x/÷ this
};

using OfRecord = std::function<std::string(const Record&)>;
// Fits all records but those whose group, as `of` names it, is `without`.
FittedParameters fit(const std::vector<ComparedRecord>&, const OfRecord& of = &Record::configuration,
                     std::string_view without = "");
// As lines of a data file (sim/published/fitted.published).
std::string fit_text(const FittedParameters&, const std::vector<ComparedRecord>&);

// How well simulated values agree with many records. Shares and errors are fractions.
struct Accuracy {
  std::size_t records = 0;
  double median = 0, ninth = 0, worst = 0;  // of absolute errors; ninth: the 90th percentile
  double inside = 0, width = 1;             // fraction of records within their interval; the median width
};

// The quantile: the value below which the fraction `part` of the values lies.
double value_at(std::vector<double> values, double part);

class AccuracyAccumulator {
 public:
  void add(double error, bool inside, double width);
  Accuracy found() const;

 private:
  std::vector<double> errors_, widths_;
  std::size_t inside_ = 0;
};

// The accuracy for each kind of record, if each record is answered by a fit without its group. `of` names a record's
// group: its configuration or its publisher.
std::map<std::string, Accuracy> hold_out(const std::vector<ComparedRecord>&, const OfRecord& of);

// Whether simulated times put the versions of a kernel in the order of the measured ones: Kendall's tau over the pairs
// of versions within each ladder whose measured times differ by more than `tie`.
struct KernelRankingAccuracy {
  std::size_t ladders = 0, pairs = 0;
  double tau = 0;
};
inline constexpr double tie = 0.02;
KernelRankingAccuracy ranking(const std::vector<ComparedRecord>&);

}  // namespace trellis::measure
