// Plans a call: chooses the algorithm, proves its schedule, compiles this rank's program, and caches the results.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ccl/call.h"
#include "ccl/config.h"
#include "ccl/plan/call_plan.h"
#include "ccl/plan/host/host_algorithm_chooser.h"
#include "ccl/plan/lru_memo.h"
#include "ccl/plan/plan_key.h"
#include "ccl/plan/selection_table.h"
#include "ccl/transports/ranks_by_host.h"
#include "schedule/algorithms/algorithm.h"
#include "schedule/proof/fifo_order.h"
#include "schedule/stage_unreadable_buffers.h"

namespace trellis::ccl {

class Planner {
 public:
  Planner(Rank rank, Rank ranks, TransportCapabilities, const Config&, RanksByHost = {}, RankCores = {});

  // For the thread that holds the communicator's TicketLock. The result lives at least through the call that it serves.
  const CallPlan& plan(const Call&, bool in_place, schedule::UnreadableBuffers);
  std::shared_ptr<const CallPlan> plan(const Call&, bool in_place, const schedule::Schedule&);  // from any thread
  AlgorithmConfig choose(const Call& c, bool in_place) const { return choice(c, in_place).config; }
  SelectedConfig choice(const Call&, bool in_place) const;  // from any thread
  int cores() const;  // of all ranks together, at most one each; 0: it is not known
  std::span<const PredictedTime> predicted(const Call&) const;  // fastest first; empty: the host model does not choose
  kernels::DType wire_of(const Call&) const;                    // the type of its messages
  bool traces(const Call&) const;  // true: values are rounded on their way: plans have contributors and stage nothing

 private:
  // A task and the algorithm for it. The config determines the task's pieces and evenness.
  struct Chosen {
    AlgorithmConfig config;
    schedule::Task task;
    bool operator==(const Chosen&) const = default;
  };
  struct Traced {
    Chosen chosen;
    bool traced = false;
    bool operator==(const Traced&) const = default;
  };
  struct Concealed {
    Chosen chosen;
    schedule::UnreadableBuffers hidden = {};
    bool operator==(const Concealed&) const = default;
  };
  // This rank's part of a proved schedule.
  struct Proved {
    schedule::Task task;
    schedule::Program program;
    std::vector<std::int32_t> origins_of_steps = {};  // step numbers in the schedule as written; empty: unchanged
    std::optional<ProgramContributors> origins = {};
    std::optional<std::uint64_t> schedule = {};  // message_hash() of a given schedule; none: the config determines it
  };
  Chosen chosen_by(const Call&, bool in_place, const AlgorithmConfig&) const;
  schedule::Request request(const Chosen&) const;
  std::string misfit(const schedule::Task& given, const Call&, bool in_place) const;
  SelectedConfig decide(const Call&, bool in_place) const;
  std::optional<AlgorithmConfig> choose_by_shape(const Call&, bool in_place) const;
  std::string refusal(const AlgorithmConfig&, const Call&, bool in_place) const;
  schedule::FifoOrderedSchedule written_out(const Chosen&) const;
  Proved part_of(const schedule::FifoOrderedSchedule&, bool traced) const;
  Proved prove(const Traced&) const;
  bool prove_concealed(const Concealed&) const;  // throws, or returns true
  CallPlan make(const PlanKey&);
  CallPlan made(const PlanKey&, const AlgorithmConfig&, const Proved&);
  TransportCapabilities paths_for(const PlanKey&, const AlgorithmConfig&, const Proved&) const;
  const CallPlan& plan_passing(const Call&, const BufferTraits&);
  const AlgorithmConfig* kept(const AlgorithmConfig& config) {
    return &configs_.emplace(text_of(config), config).first->second;
  }

  mutable std::mutex making_;  // guards what threads without the TicketLock use too: chooser, files, configs, proofs
  const Rank rank_, ranks_;
  const TransportCapabilities paths_;
  const RanksByHost shape_;  // with more than one dimension, choose_by_shape comes first
  const kernels::DType wire_;
  const kernels::Rounding rounding_;
  std::map<Collective, AlgorithmConfig> fixed_;  // from the configuration
  SelectionTable selections_;
  const std::string machine_;
  mutable HostAlgorithmChooser chooser_;
  std::map<std::string, AlgorithmConfig> configs_;                               // all that were ever made
  mutable LruMemo<std::pair<AlgorithmConfig, bool>, schedule::Schedule> given_;  // from files; true: in place
  LruMemo<Traced, Proved> proved_;
  LruMemo<Concealed, bool> concealed_;  // schedules proved with the input, the output or both hidden
  std::unordered_map<PlanKey, std::unique_ptr<CallPlan>, PlanKey::Hash> made_;
  struct Last {
    const PlanKey* asked = nullptr;
    const CallPlan* planned = nullptr;
  };
  std::array<Last, static_cast<std::size_t>(Collective::barrier) + 1> last_ = {};  // per collective; points into made_

  // A plan for a call with its own counts or pairs; only the last few are kept.
  struct OneOffPlan {
    PlanKey asked;
    CallPlan planned;
  };
  static constexpr std::size_t most_passing = 8;
  std::vector<std::unique_ptr<OneOffPlan>> passing_;  // most recently used first
};

BlockCounts counts_of(const Call&, Rank rank, Rank ranks);
std::size_t larger_bytes(const Call&, Rank ranks);  // of the larger of the two buffers
// The same on all ranks: whether to stage buffers that peers cannot read (schedule/stage_unreadable_buffers.h).
bool worth_showing(const Call&, Rank ranks);

}  // namespace trellis::ccl
