// What each way of doing a collective costs among some ranks of a machine, over sizes; and which is best from where on.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/price.h"

namespace trellis::sim {

// An algorithm with its lanes and parts, and, where it has levels, what is done at each.
struct Way {
  std::string algorithm;
  std::int32_t channels = 1, segments = 1;
  std::vector<std::string> levels = {};
  std::vector<Rank> dims = {};  // the group's shape as the algorithm is to see it; empty: as it is
  auto operator<=>(const Way&) const = default;
};
std::string text_of(const Way&);    // "ring*2/4", "hierarchical(mesh,ring)@4x16*2"
Way way_named(std::string_view);    // the reverse; throws invalid_argument
std::string family_of(const Way&);  // without lanes and parts: "hierarchical(mesh,ring)@4x16"

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
Group first_ranks(const Machine&, Rank count);  // whole dimensions where it fits, else a row
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
    std::vector<schedule::Pair> pairs = {};
    bool in_place = false;
  };
  Pricer(const Machine&, Group, Settings);

  // Why the algorithm can't do it so; empty when it can.
  std::string refusal(const Way&) const;
  Price price(const Way&, double bytes, bool explain = false);
  void forget(const Way& way) { patterns_.erase(way); }  // what was made for it

  schedule::Request request(const Way&) const;
  const Machine& machine() const { return machine_; }
  const Group& group() const { return group_; }
  const Settings& settings() const { return settings_; }

 private:
  const Machine& machine_;
  Group group_;
  Settings settings_;
  std::map<Way, std::unique_ptr<Pattern>> patterns_;
};

// Every algorithm that serves it, or of the named ones, with each number of lanes and parts, but for those that come to
// nothing new because the algorithm has no more data to cut.
std::vector<Way> ways_of(const Pricer&, const std::vector<std::string>& algorithms,
                         const std::vector<std::int32_t>& lanes, const std::vector<std::int32_t>& parts);
// The fastest of these; none: no way serves.
std::optional<Cost> fastest(Pricer&, const std::vector<Way>&, double bytes);

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
