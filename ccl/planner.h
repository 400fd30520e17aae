// From a call to the program that serves it: the algorithm chosen, its schedule proved, compiled, and kept.
#pragma once

#include <array>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "ccl/communicator.h"
#include "ccl/compiled.h"
#include "ccl/selector.h"
#include "schedule/algorithm.h"
#include "schedule/shown.h"

namespace trellis::ccl {

struct Planned {
  const Choice* choice = nullptr;  // lives as long as the planner
  kernels::DType wire = {};        // the type that its messages have
  std::uint64_t mark = 0;          // equal on ranks that mean the same, the operator and the operation's number aside
  Compiled compiled = {};
};

class Planner {
 public:
  Planner(Rank rank, Rank ranks, int lanes, const Config&);

  // Lives until so many others have been made that it is forgotten; never during the call that it serves.
  const Planned& plan(const Call&, bool in_place, schedule::Hidden);
  std::shared_ptr<const Planned> plan(const Call&, bool in_place, const schedule::Schedule&);
  Choice choose(const Call&, bool in_place) const;
  bool traces(const Call&) const;  // values are rounded on their way, by their origins; not with anything hidden

 private:
  struct Key {
    std::size_t count = 0;
    Rank root = 0;
    Collective collective = {};
    kernels::DType type = {};
    bool in_place = false;
    bool traced = false;
    schedule::Hidden hidden = {};
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const {
      return k.count * 0x9E37'79B9'7F4A'7C15 ^ static_cast<std::size_t>(k.root) << 20 ^
             static_cast<std::size_t>(k.collective) << 8 ^ static_cast<std::size_t>(k.type) << 2 ^
             static_cast<std::size_t>(k.hidden.input) << 62 ^ static_cast<std::size_t>(k.hidden.output) << 61 ^
             static_cast<std::size_t>(k.traced << 1) ^ k.in_place;
    }
  };
  struct Proved {
    schedule::Task task;
    schedule::Program program;
    std::optional<Origins> origins = {};
  };
  using Name = std::tuple<std::string, Collective, Rank, bool, bool>;  // choice, and what else this depends on
  schedule::Request request(const Call&, bool in_place, const Choice&) const;
  std::string refusal(const Choice&, const Call&, bool in_place) const;
  const schedule::Schedule& given(const Choice&) const;
  bool in_order(const Choice&, const schedule::Request&) const;
  kernels::DType wire_of(const Call&) const;
  Planned make(const Call&, bool in_place, schedule::Hidden);
  Planned made(const Call&, const Choice&, const schedule::Task&, const schedule::Program&, const Origins*,
               schedule::Hidden = {});
  const Proved& proved(const Choice&, const schedule::Request&, bool traced);
  void prove_shown(const Choice&, const schedule::Request&, schedule::Hidden);
  const Choice* kept(const Choice& choice) { return &choices_.emplace(text_of(choice), choice).first->second; }

  const Rank rank_, ranks_;
  const int lanes_;
  const kernels::DType wire_;
  const kernels::Rounding rounding_;
  std::map<Collective, Choice> fixed_;  // by the configuration
  Selections selections_;
  const std::string machine_;
  std::map<std::string, Choice> choices_;  // all that were ever made
  std::map<Name, Proved> proved_;
  std::set<std::tuple<Name, bool, bool>> shown_;             // with the input hidden, the output: proved as well
  mutable std::map<std::string, schedule::Schedule> given_;  // by choice: read from files
  mutable std::map<Name, bool> in_order_;                    // of choices with a shape
  std::unordered_map<Key, std::unique_ptr<Planned>, Hash> made_;
  struct Last {
    Key key = {};
    kernels::Reduction op = {};
    const Planned* planned = nullptr;
  };
  std::array<Last, static_cast<std::size_t>(Collective::barrier) + 1> last_ = {};  // of each collective

  // Of calls with counts or pairs of their own, of which there can be any number: the last few.
  struct Passing {
    Key key = {};
    std::vector<schedule::Pair> pairs = {};
    std::vector<std::size_t> counts = {}, arriving_counts = {};
    Planned planned = {};
  };
  const Planned& plan_passing(const Call&, const Key&);

  static constexpr std::size_t most_passing = 8;
  std::vector<std::unique_ptr<Passing>> passing_;  // the latest used first
};

Counts counts_of(const Call&, Rank rank, Rank ranks);
std::size_t larger_bytes(const Call&, Rank ranks);  // of the larger of the two buffers
bool worth_showing(const Call&, Rank ranks);        // what peers can't read: see schedule/shown.h; all ranks agree

}  // namespace trellis::ccl
