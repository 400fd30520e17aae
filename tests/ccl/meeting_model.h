// A model of split and shrink among a few ranks, small enough to visit every reachable state. The ranks decide by
// ccl/divide/split_protocol.h; they may read each other's boards (published states) arbitrarily late, time out at any
// moment, try again, and die.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ccl/divide/split_protocol.h"

namespace trellis::ccl {

struct ModelCall {
  MembershipNotice::Call call = MembershipNotice::Call::shrink;
  std::vector<Rank> members = {};  // shrink
  ColorKey wish = {};              // split
  int tries = 1;                   // how often it is called, at most
};

struct Scenario {
  std::vector<std::vector<ModelCall>> scripts = {};  // by rank; a rank whose split fails goes on with its next shrink
  int deaths = 0;
  bool meet = true;  // whether ranks that go on trying must come together
};

// The rules by which ranks decide: the library's own, except where a test plants a fault.
struct Rules {
  SplitAction (*next)(const SplitView&) = next_of;
  Rank (*gone)(const SplitView&, std::span<const Rank> missing) = trellis::ccl::gone;
};

class Model {
 public:
  explicit Model(Scenario, Rules = {});

  // Visits all reachable states. Throws logic_error, with the steps to the fault, when a rank is in a communicator that
  // it should not be in, or when ranks that go on trying do not come together.
  void explore();
  std::size_t states() const { return nodes_.size(); }
  std::size_t well() const { return well_; }  // how many calls ended well in the steps that were explored
  std::size_t badly() const { return badly_; }

 private:
  static constexpr int most_ranks = 3, most_ballots = 10;
  enum class Phase : std::uint8_t { between, meets, joins, doubts, done, dead };
  struct Process {
    Phase phase = Phase::between;
    std::uint8_t call = 0, tries = 0;  // index in its script; earlier tries of that call
    std::uint8_t ballot = 0;
    std::uint8_t kept = 0, group = 0;  // indices into wishes_ and groups_
    std::uint16_t board = 0;           // index into notices_
    std::uint16_t seen[most_ranks] = {};
    std::uint16_t unused = 0;
  };
  struct Ballot {
    std::uint8_t joined = 0, call = 0, group = 0;
    std::uint8_t outcome = 0;
  };
  struct World {
    Process ranks[most_ranks] = {};
    Ballot ballots[most_ballots] = {};
    std::uint8_t ballot_count = 0, deaths = 0, given_up = 0, unused = 0;
  };
  struct Node {
    World world;
    std::size_t from;
    std::string how;
  };

  const ModelCall& call_of(const Process& p, Rank r) const {
    return scenario_.scripts[static_cast<std::size_t>(r)][p.call];
  }
  SplitView known(const World&, Rank);
  void post(Process&, const MembershipNotice&);
  void begin(Process&, std::uint32_t attempt);
  void call(Process&, Rank);
  bool act(World&, Rank);  // false: it waits
  bool meet(World&, Rank);
  bool join(World&, Rank);
  void open(World&, Rank, bool leads);
  void end(World&, Rank, bool well);
  void expire(World&, Rank);
  void after_drop(Process&);
  std::vector<Rank> expected(const Process&, Rank) const;
  std::vector<Rank> missing(const Ballot&) const;
  void check(const World&) const;
  void check_comes_together(World);
  void forget(World&) const;
  void add(World, std::size_t from, std::string how);
  void follow(std::size_t node);
  std::string way_to(std::size_t node) const;

  Scenario scenario_;
  Rules rules_;
  Rank ranks_;
  std::vector<MembershipNotice> notices_ = {MembershipNotice{}};
  std::vector<std::vector<ColorKey>> wishes_ = {{}};
  std::vector<std::vector<Rank>> groups_ = {{}};
  std::vector<MembershipNotice> seen_;  // by the rank that decides
  MembershipNotice mine_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, std::size_t> visited_;
  std::size_t well_ = 0, badly_ = 0;
};

}  // namespace trellis::ccl
