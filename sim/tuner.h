// What each way of doing a collective costs among some ranks of a machine, over sizes; and which is best from where on.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/way.h"
#include "sim/price.h"
#include "sim/rank_bound.h"

namespace trellis::sim {

using schedule::family_of;
using schedule::text_of;
using schedule::Way;
using schedule::way_named;

// Ranks of a machine that do a collective together, and their shape, innermost dimension first.
struct Group {
  std::string name;  // "all", "inner-16", "across-4"
  std::vector<Rank> dims;
  std::vector<Rank> members = {};  // empty: all of the machine
  bool across = false;             // one of each unit, and not all of one
  Rank ranks() const;
};

// All ranks; those of the first chip, ring, plane, host ...; and one of each of these. The largest first.
std::vector<Group> groups_of(const Machine&);
Group first_ranks(const Machine&, Rank count);     // whole dimensions where it fits, else a row
Group first_in_a_row(const Machine&, Rank count);  // 0: all
// Throws invalid_argument, naming the known.
Group group_named(const Machine&, std::string_view);

struct Cost {
  Way way;
  double bytes = 0;
  Time time = 0;
};

// Prices ways of one collective in one group; what does not depend on bytes is made once for each. For one thread.
class Pricer {
 public:
  struct Settings {
    schedule::Collective collective = schedule::Collective::all_reduce;
    std::string era = {};  // the machine's usual one
    double element = 4;    // bytes
    Rank root = 0;
    Rank peer = -1;  // the receiver of send_recv; below 0: the last rank
    std::vector<schedule::Pair> pairs = {};
    bool in_place = false;
    bool fold = true, packets = false;
    std::function<bool(Time, double)> stopped = {};  // as in RunSettings
  };
  Pricer(const Machine&, Group, Settings);

  // Why the algorithm can't do it so; empty when it can.
  std::string refusal(const Way&) const;
  Price price(const Way&, double bytes, bool explain = false, Time limit = forever);
  Time least(const Way&, double bytes, Time limit = forever);  // no price is lower
  struct Outline {
    Time least = 0;
    std::int64_t moves = 0;  // of all ranks, if they do as much as the first one
    std::int64_t steps = 0;  // of that one
    bool whole = true;       // false: it has more steps than were looked at
  };
  static constexpr std::int64_t any_steps = std::numeric_limits<std::int64_t>::max();
  // Likewise, by one rank's steps: far less work. No more steps are looked at than so many, or than say that it takes
  // longer than the limit.
  Outline outline(const Way&, double bytes, std::int64_t most_steps = any_steps, Time limit = forever);
  // Likewise, by what all ranks of the first one's chip move; forever: it is more than the limit.
  Time least_of_chip(const Way&, double bytes, Time limit = forever);
  const Pattern& pattern(const Way&, double bytes);      // lives until it is forgotten, or another size is asked for
  const Pattern& uncounted(const Way&);                  // likewise, with chunks not told apart by their elements
  void forget(const Way& way) { patterns_.erase(way); }  // what was made for it

  schedule::Request request(const Way&) const;
  PriceOptions options(double bytes, Time limit = forever) const;
  const Machine& machine() const { return machine_; }
  const Group& group() const { return group_; }
  const Settings& settings() const { return settings_; }

 private:
  const Machine& machine_;
  Group group_;
  Settings settings_;
  struct Made {
    double bytes = 0;
    std::unique_ptr<Pattern> pattern = {};
  };
  std::map<Way, Made> patterns_;
  std::map<Rank, RankWays> ways_;  // of the machine's rank

  bool look_at(Rank, const Way&, RankBound&, std::int64_t most_steps, Time limit);
  RankWays& ways_from(Rank);
};

// Every algorithm that serves it, or of the named ones, with each number of lanes and parts, but for those that come to
// nothing new because the algorithm has no more data to cut.
std::vector<Way> ways_of(const Pricer&, const std::vector<std::string>& algorithms,
                         const std::vector<std::int32_t>& lanes, const std::vector<std::int32_t>& parts);
// From `from` bytes on, until the next one, this way is chosen.
struct Region {
  double from = 0;
  Way way;
  Time time = 0;  // at its first size
};

inline constexpr double worth_changing = 0.03;  // of the time, for another way than at the size before

// For costs in any order; the first region begins at 0. With `family`, a change of lanes or parts begins no region.
std::vector<Region> regions_of(std::vector<Cost>, bool family);
// The size between two at which the second way becomes the cheaper one, within so many times the size.
double crossover(Pricer&, const Way& before, const Way& after, double low, double high, double within = 1.02);

}  // namespace trellis::sim
