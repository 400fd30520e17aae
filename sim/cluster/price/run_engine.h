// The internal state of a SimulationRun. run_loop.cpp has its inner loop.
#pragma once

#include <optional>
#include <unordered_map>

#include "sim/cluster/price/simulation_run.h"
#include "sim/hardware/time/batched_event_queue.h"

namespace trellis::sim {

class SimulationRun::Engine {
 public:
  Engine(const Machine&, std::vector<SimulatedCollective>, RunSettings);
  Time run();

  // Ranks of one program. The same move of all of them has neighbouring numbers, as it happens at about the same time.
  struct Row {
    std::uint64_t first_move = 0;
    std::vector<std::uint32_t> seats = {};
  };
  // A simulated rank of a collective, which other ranks may be folded into.
  struct Seat {
    std::uint32_t collective = 0, program = 0;  // the class in the collective's pattern
    std::uint64_t first_peer = 0, first_link = 0;
    std::uint32_t stride = 1;  // between the numbers of its moves
    std::uint64_t first_move = 0;
    Rank rank = 0;  // of the machine
    float slowness = 1;
    Time busy = 0;                   // until when its collective cores are busy
    std::uint8_t sends_away = 0;     // a send to another host is in flight, or its pause has not passed
    std::uint32_t first_wait = 0;    // in blocks: where the Loop counts what its moves wait for
    ResourceUse hbm = {}, dma = {};  // use of one pass over them; weight 0: unbounded
  };
  static constexpr std::uint32_t lanes = 8;  // to a peer; more channels share these
  struct Peer {
    std::uint32_t seat = 0;
    Rank rank = 0;
    std::uint32_t first = 0, count = 0;  // links of the route: a range of links_, from the seat's first_link on
    Time latency = 0;
    bool away = false;         // on another host
    std::uint8_t sending = 0;  // a bit for each lane on which something moves
  };

  const RankClassProgram& program(const Seat& s) const {
    return collectives_[s.collective].pattern->classes()[s.program];
  }
  void uses_of(const Seat&, const Move&, std::vector<ResourceUse>&) const;
  bool needs_no_bytes(const Seat&, const Move&) const;
  std::uint64_t number(const Seat& s, std::uint32_t move) const {
    return s.first_move + std::uint64_t{s.stride} * move;
  }
  struct SeatMove {
    std::uint32_t seat = 0, move = 0;
  };
  SeatMove numbered(std::int64_t number) const;

  const Machine& machine_;
  std::vector<SimulatedCollective> collectives_;
  RunSettings settings_;
  SoftwareOverheads overheads_;
  std::unique_ptr<RankFolding> folding_;  // null: every rank is simulated
  std::vector<std::uint32_t> like_;       // by collective: the one whose ranks stand for its own
  std::unique_ptr<Network> network_;
  RateUnit unit_ = RateUnit::thousandth;  // of the network's rates
  std::vector<Seat> seats_;
  std::vector<Row> rows_;
  std::uint64_t moves_ = 0;
  std::vector<Peer> peers_;
  std::vector<ResourceUse> links_;
  std::vector<Work> chunk_work_;  // of each collective
  std::vector<MoveTrace> traces_;
  std::vector<Time> ended_;
  std::vector<Time> loads_ended_;
  struct SimulatedLoad {
    ResourceUse hbm = {}, rate = {};  // what it takes of the HBM, and of the resource that limits it
    std::uint32_t like = 0;           // the load that stands for it: itself, if it is simulated
  };
  std::vector<SimulatedLoad> loads_;
  bool few_ = false;  // resources are numbered as they are first used; else as in the machine
  std::unordered_map<ResourceId, std::uint32_t> numbers_;
  std::int64_t transfers_ = 0, events_ = 0;

 private:
  std::optional<schedule::Symmetry> symmetry();
  void add_seats(std::uint32_t collective);
  void expect_memory(bool folds) const;
  void add_loads();
  void add_peers(Seat&, Rank own);
  std::uint32_t number(ResourceId);
  ResourceUse one_pass(ResourceId);

  std::vector<Rate> capacities_;
  std::vector<std::uint32_t> first_seat_;  // by collective
  std::vector<Rank> own_;                  // by seat: the rank's number in its collective
  std::vector<std::uint32_t> kind_;        // by collective: one number for those that are alike and begin together
  // In a folded run: the seat of a machine's rank, by the collective's kind.
  std::uint32_t seat_of(std::uint32_t collective, Rank r) const {
    return seat_of_.at(seat_key(collective, folding_->representative(r)));
  }
  std::uint64_t seat_key(std::uint32_t collective, Rank r) const {
    const std::uint64_t kind = kind_.empty() ? 0 : kind_[collective];
    return kind << 32 | static_cast<std::uint32_t>(r);
  }
  std::unordered_map<std::uint64_t, std::uint32_t> seat_of_;
};

}  // namespace trellis::sim
