// The price of a collective: how long a schedule takes on a machine, and why. Also its lower bounds.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/price/simulation_run.h"

namespace trellis::sim {

struct PriceOptions {
  double bytes = 0;      // of the larger buffer, as nccom-test and nccl-tests report it
  double element = 4;    // bytes of an element; with fewer elements than chunks, some chunks are empty
  std::string era = {};  // of the machine's software; empty: the usual one
  bool fold = true;
  Time limit = forever;                            // give up beyond this; the price's time is then forever
  bool explain = false;                            // find the critical path
  std::function<bool(Time, double)> stopped = {};  // as in RunSettings; the price's time is then forever
  std::optional<std::uint64_t> noise = {};         // as in RunSettings
  std::vector<Rank> members = {};  // the machine's ranks that take part, in the order of their ranks; empty: all

  // rank of the machine
  Rank place(Rank r) const { return members.empty() ? r : members[static_cast<std::size_t>(r)]; }
};

// Lower bounds that hold for every schedule.
struct LowerBounds {
  Time latency = 0;    // the launch, and one transfer between distant ranks that need one
  Time bandwidth = 0;  // what each chip must send, over all its links
  Time bisection = 0;  // what must cross between the halves of the machine
  Time memory = 0;     // what a chip's ranks must read and write of its HBM
  Time most() const { return std::max({latency, bandwidth, bisection, memory}); }
};

// A stretch of the critical path. Each begins when the one before it ends.
struct CriticalPathLeg {
  enum class Kind : std::uint8_t { launch, software, moving, latency } kind = Kind::software;
  Time time = 0;
  Rank from = -1, to = -1;            // of a transfer; to: -1: local
  ResourceId resource = no_resource;  // moving: the busiest resource it uses
};

struct Price {
  Time time = 0;
  double bytes = 0;
  double algbw = 0, busbw = 0;  // bytes a second
  LowerBounds bounds;
  ResourceId busiest = no_resource;
  std::string busiest_name;
  double busiest_share = 0;           // part of the time that it was busy
  std::vector<CriticalPathLeg> path;  // if explained
  Rank simulated = 0;                 // ranks that were simulated; the others are like them
  std::int64_t transfers = 0;
  bool exact = true;  // false: with crowded flows rates are right to one part in 8,192 (approximate_flow_network.h)
};

Price price(const schedule::Schedule&, const Machine&, const PriceOptions&);
// Programs are written out for every rank only if nothing folds; else once for each class of like ranks.
Price price(const schedule::Algorithm&, const schedule::Request&, const Machine&, const PriceOptions&);
Price price(const CompiledSchedule&, const Machine&, const PriceOptions&);
// moves_gone_through: how many moves a price will simulate, known before the run. Up to most_traced moves may be
// recorded with `trace`.
inline constexpr std::int64_t most_traced = 20'000'000;
double moves_gone_through(const CompiledSchedule&, const Machine&, const PriceOptions&);
// The schedule's ranks that stand for all of them, see rank_folding.h. None also if every rank is asked for (`fold` is
// false) or has delays of its own (`noise`).
std::optional<std::vector<Rank>> folded_ranks(const schedule::Symmetry&, const Machine&, const PriceOptions&);
std::unique_ptr<SimulationRun> run_for(const CompiledSchedule&, const Machine&, const PriceOptions&, bool trace);
// A lower bound for this pattern: each transfer as if alone, each resource as if never idle. Much cheaper than a price.
Time least_time(const CompiledSchedule&, const Machine&, const PriceOptions&);
// Whether blocks have fewer elements than chunks, so that some chunks are empty. Every rank then needs a program of its
// own, which is not made for more than 1,024 ranks: beyond that the answer is no.
bool has_empty_chunks(const schedule::Task&, const PriceOptions&);
// Throws CompilationStopped where the options say stop.
CompiledSchedule pattern_for(const schedule::Algorithm&, const schedule::Request&, const PriceOptions&);

// sized: the blocks have sizes of their own (the _v forms), some of which may be 0.
LowerBounds lower_bounds(const schedule::Task&, const Machine&, const PriceOptions&, bool sized = false);
// "71% chip 12 waits for its send to chip 44 over efa out, 20% handshakes and DMA starts", largest first.
std::string path_in_words(const Price&, const Machine&);

}  // namespace trellis::sim
