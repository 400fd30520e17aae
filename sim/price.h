// price: how long a collective takes on a machine, and why.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/run.h"

namespace trellis::sim {

struct PriceOptions {
  double bytes = 0;      // of the larger buffer, as nccom-test and nccl-tests print it
  double element = 4;    // bytes of an element: where there are fewer of them than chunks, some chunks are empty
  std::string era = {};  // of the machine's software; empty: its usual one
  bool fold = true;
  bool packets = false;
  double packet = 4096;                            // bytes
  Time limit = forever;                            // give up beyond; the price is then forever
  bool explain = false;                            // find the critical path
  std::function<bool(Time, double)> stopped = {};  // as in RunSettings; the price is then forever
  std::optional<std::uint64_t> noise = {};         // as in RunSettings
  std::vector<Rank> members = {};  // which of the machine's ranks take part, in the order of their ranks; empty: all

  Rank place(Rank r) const { return members.empty() ? r : members[static_cast<std::size_t>(r)]; }  // in the machine
};

// What no schedule could be faster than.
struct Bounds {
  Time latency = 0;    // the launch, and one transfer between the ranks farthest from each other
  Time bandwidth = 0;  // what each chip must send, over all its ways out
  Time bisection = 0;  // what must pass from one half of the machine to the other
  Time memory = 0;     // what a chip's ranks must read and write of its HBM
  Time most() const { return std::max({latency, bandwidth, bisection, memory}); }
};

// A stretch of the critical path: each begins when the one before it ends.
struct Leg {
  enum class Kind : std::uint8_t { launch, software, moving, latency } kind = Kind::software;
  Time time = 0;
  Rank from = -1, to = -1;            // of a transfer; to: -1: local
  ResourceId resource = no_resource;  // moving: the busiest that it is on
};

struct Price {
  Time time = 0;
  double bytes = 0;
  double algbw = 0, busbw = 0;  // bytes a second
  Bounds bounds;
  ResourceId busiest = no_resource;
  std::string busiest_name;
  double busiest_share = 0;  // of the time that it was busy
  std::vector<Leg> path;     // where explained
  Rank simulated = 0;        // ranks that were gone through; the others are like them
  std::int64_t transfers = 0;
  bool exact = true;  // false: where flows crowded, their rates are right to one part in 8,192 (see adaptive_network.h)
};

Price price(const schedule::Schedule&, const Machine&, const PriceOptions&);
// Written out only where nothing folds; a program for a class of like ranks is made once.
Price price(const schedule::Algorithm&, const schedule::Request&, const Machine&, const PriceOptions&);
Price price(const Pattern&, const Machine&, const PriceOptions&);
// What a price goes through, before it does; with `trace` to look at afterwards, up to so many moves of these.
inline constexpr std::int64_t most_traced = 20'000'000;
double moves_gone_through(const Pattern&, const Machine&, const PriceOptions&);
// What folds it, see folded_symmetry; none also where every rank is asked for, or has delays of its own.
std::optional<schedule::Symmetry> folded_symmetry(const schedule::Symmetry&, const Machine&, const PriceOptions&);
std::unique_ptr<Run> run_for(const Pattern&, const Machine&, const PriceOptions&, bool trace);
// What no run of it can beat: each transfer as if alone, each resource as if never idle. A small part of price's work.
Time least_time(const Pattern&, const Machine&, const PriceOptions&);
// So few elements that chunks are empty but for the first ones: then each rank's are told apart.
bool has_empty_chunks(const schedule::Task&, const PriceOptions&);
Pattern pattern_for(const schedule::Algorithm&, const schedule::Request&, const PriceOptions&);

double bus_factor(const schedule::Task&);  // busbw over algbw
Bounds lower_bounds(const schedule::Task&, const Machine&, const PriceOptions&);
// "71% chip 12 waits for its send to chip 44 over efa out, 20% handshakes and DMA starts", largest first.
std::string path_in_words(const Price&, const Machine&);

}  // namespace trellis::sim
