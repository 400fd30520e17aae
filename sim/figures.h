// Hardware as data: named figures, each with its unit, how sure it is, and where it comes from.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units.h"

namespace trellis::sim {

// documented: printed by the maker, or a published measurement of just this. fitted: chosen so that the records named
// come out. assumed: ours, within low and high, with the reasoning as its source.
enum class Mark : std::uint8_t { documented, fitted, assumed };
std::string_view name(Mark);

enum class Dimension : std::uint8_t { number, time, bytes, rate, frequency, cycles };
std::string_view name(Dimension);

struct Figure {
  double value = 0;  // in seconds, bytes, bytes a second, hertz, cycles, or plain
  Dimension dimension = Dimension::number;
  Mark mark = Mark::documented;
  double low = 0, high = 0;               // of assumed and fitted; value otherwise
  std::vector<std::string> records = {};  // of fitted
  double residual = 0;                    // of fitted: the part by which its records are missed; 0: not said
  std::string source = {};
  std::size_t line = 0;  // of the text that was read; 0: taken over from another
};

// One figure a line, each key once: a value with its unit (none for a plain number), a range where it has one, the
// mark, the source. A '#' that begins a word begins a comment; `like NAME`, before the first figure, takes over
// another file's figures, which later lines replace:
//   tensor.clock = 2.8 GHz | documented | nki/guides/architecture/trainium_inferentia2_arch.rst
//   vector.latency = 339 ns | fitted instr.trn1.tensor_tensor.fp32.8192.64p | 2N and this, at 1.12 GHz
//   hbm.latency = 300 ns 150..600 | assumed | as other HBM2e controllers
// An assumed figure states its range; a fitted one its records, after the part by which they are missed where that is
// known: `fitted 4% RECORD...`. Asking remembers what was asked for, so that threads
// have a copy each.
class Figures {
 public:
  using Others = std::function<std::string_view(std::string_view name)>;  // the text that `like` means

  // Throws invalid_argument, naming the line, its fault and what was expected. Lines are counted from `first` on.
  static Figures read(std::string_view text, const Others& = {}, std::size_t first = 1);

  bool has(std::string_view key) const;
  const Figure& at(std::string_view key) const;  // throws invalid_argument when there is none

  // Each throws when the figure is missing or measures something else.
  double number(std::string_view key) const;
  std::int64_t count(std::string_view key) const;  // a whole number, at least 0
  Time time(std::string_view key) const;
  double bytes(std::string_view key) const;
  double rate(std::string_view key) const;  // bytes a second
  double frequency(std::string_view key) const;
  double cycles(std::string_view key) const;

  void set(std::string_view key, double value);           // what if; the key must be there
  void set(std::string_view key, std::string_view text);  // "12 GB/s", of the same dimension

  const std::map<std::string, Figure, std::less<>>& all() const { return figures_; }
  // Throws for the first figure that nobody asked for, so that a misspelt name is found.
  void expect_all_used(std::string_view what) const;
  std::string text() const;  // reads back as the same

 private:
  const Figure& used(std::string_view key, Dimension) const;

  std::map<std::string, Figure, std::less<>> figures_;
  mutable std::set<std::string, std::less<>> used_;
};

}  // namespace trellis::sim
