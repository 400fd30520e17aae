// Hardware parameters as data: named figures, each with its unit, how certain it is, and its source.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/time/units.h"

namespace trellis::sim {

// documented: published by the maker, or a published measurement of exactly this. fitted: chosen so that the named
// records are reproduced. assumed: our own value, within low and high; the source gives the reasoning.
enum class FigureProvenance : std::uint8_t { documented, fitted, assumed };
std::string_view name(FigureProvenance);

enum class Dimension : std::uint8_t { number, time, bytes, rate, frequency, cycles };
std::string_view name(Dimension);

struct Figure {
  double value = 0;  // in seconds, bytes, bytes a second, hertz, cycles, or plain
  Dimension dimension = Dimension::number;
  FigureProvenance mark = FigureProvenance::documented;
  double low = 0, high = 0;               // of assumed and fitted figures; else equal to value
  std::vector<std::string> records = {};  // of fitted figures
  double residual = 0;                    // of fitted figures: the relative error of the fit; 0: not stated
  std::string source = {};
  std::size_t line = 0;  // of the text that was read; 0: inherited by `like`
};

// One figure a line, each key once: a value with its unit (none for a plain number), a range if it has one, its
// provenance, its source. A '#' at the start of a word begins a comment. `like NAME`, before the first figure, inherits
// another file's figures; later lines replace them:
//   tensor.clock = 2.8 GHz | documented | nki/guides/architecture/trainium_inferentia2_arch.rst
//   vector.latency = 339 ns | fitted instr.trn1.tensor_tensor.fp32.8192.64p | 2N and this, at 1.12 GHz
//   hbm.latency = 300 ns 150..600 | assumed | as other HBM2e controllers
// An assumed figure states its range. A fitted one names its records, after the relative error of the fit if that is
// known: `fitted 4% RECORD...`. A lookup records that the key was used, so each thread needs its own copy.
class Figures {
 public:
  using Others = std::function<std::string_view(std::string_view name)>;  // the text that `like` refers to

  // Throws invalid_argument with the line, the fault and what was expected. `first` is the number of the first line.
  static Figures read(std::string_view text, const Others& = {}, std::size_t first = 1);

  bool has(std::string_view key) const;
  const Figure& at(std::string_view key) const;  // throws invalid_argument if there is none

  // Each throws if the figure is missing or has another dimension.
  double number(std::string_view key) const;
  std::int32_t count(std::string_view key) const;  // a whole number, at least 0
  Time time(std::string_view key) const;
  double bytes(std::string_view key) const;
  double rate(std::string_view key) const;  // bytes a second
  double frequency(std::string_view key) const;
  double cycles(std::string_view key) const;

  void set(std::string_view key, double value);           // for what-if; the key must exist
  void set(std::string_view key, std::string_view text);  // "12 GB/s", of the same dimension

  const std::map<std::string, Figure, std::less<>>& all() const { return figures_; }
  void expect_times(std::string_view what) const;  // throws for a time below 0, except in operation.* and step.*
  // Throws for the first figure that was never looked up, so a misspelt key is found.
  void expect_all_used(std::string_view what) const;
  std::string text() const;  // reads back as the same figures

 private:
  const Figure& used(std::string_view key, Dimension) const;

  std::map<std::string, Figure, std::less<>> figures_;
  mutable std::set<std::string, std::less<>> used_;
};

}  // namespace trellis::sim
