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
#include "ccl/plan/host/host_chooser.h"
#include "ccl/plan/keyed_cache.h"
#include "ccl/plan/plan_key.h"
#include "ccl/plan/planned.h"
#include "ccl/plan/selection_table.h"
#include "ccl/transports/host_shape.h"
#include "schedule/algorithms/algorithm.h"
#include "schedule/proof/queues.h"
#include "schedule/stage_unreadable_buffers.h"

namespace trellis::ccl {

class Planner {
 public:
  Planner(Rank rank, Rank ranks, MessagePaths, const Config&, HostShape = {}, RankCores = {});

  // For the thread that holds the communicator's TicketLock. The result lives at least through the call that it serves.
  const Planned& plan(const Call&, bool in_place, schedule::UnreadableBuffers);
  std::shared_ptr<const Planned> plan(const Call&, bool in_place, const schedule::Schedule&);  // from any thread
  AlgorithmConfig choose(const Call& c, bool in_place) const { return choice(c, in_place).config; }
  SelectedConfig choice(const Call&, bool in_place) const;  // from any thread
  int cores() const;  // of all ranks together, at most one each; 0: it is not known
  std::span<const PredictedTime> predicted(const Call&) const;  // fastest first; empty: the host model does not choose
  kernels::DType wire_of(const Call&) const;                    // the type of its messages
  bool traces(const Call&) const;  // values are rounded on their way, by their origins; nothing is staged then

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
    std::optional<Origins> origins = {};
    std::optional<std::uint64_t> schedule = {};  // message_hash() of a given schedule; none: the config determines it
  };
  Chosen chosen_by(const Call&, bool in_place, const AlgorithmConfig&) const;
  schedule::Request request(const Chosen&) const;
  std::string misfit(const schedule::Task& given, const Call&, bool in_place) const;
  SelectedConfig decide(const Call&, bool in_place) const;
  std::optional<AlgorithmConfig> choose_by_shape(const Call&, bool in_place) const;
  std::string refusal(const AlgorithmConfig&, const Call&, bool in_place) const;
  schedule::QueuedSchedule written_out(const Chosen&) const;
  Proved part_of(const schedule::QueuedSchedule&, bool traced) const;
  Proved prove(const Traced&) const;
  bool prove_concealed(const Concealed&) const;  // throws, or returns true
  Planned make(const PlanKey&);
  Planned made(const PlanKey&, const AlgorithmConfig&, const Proved&);
  MessagePaths paths_for(const PlanKey&, const AlgorithmConfig&, const Proved&) const;
  const Planned& plan_passing(const Call&, const BufferTraits&);
  const AlgorithmConfig* kept(const AlgorithmConfig& config) {
    return &configs_.emplace(text_of(config), config).first->second;
  }

  mutable std::mutex making_;  // guards what threads without the TicketLock use too: chooser, files, configs, proofs
  const Rank rank_, ranks_;
  const MessagePaths paths_;
  const HostShape shape_;  // with more than one dimension, choose_by_shape comes first
  const kernels::DType wire_;
  const kernels::Rounding rounding_;
  std::map<Collective, AlgorithmConfig> fixed_;  // from the configuration
  SelectionTable selections_;
  const std::string machine_;
  mutable HostChooser chooser_;
  std::map<std::string, AlgorithmConfig> configs_;                                  // all that were ever made
  mutable KeyedCache<std::pair<AlgorithmConfig, bool>, schedule::Schedule> given_;  // from files; true: in place
  KeyedCache<Traced, Proved> proved_;
  KeyedCache<Concealed, bool> concealed_;  // schedules proved with the input, the output or both hidden
  std::unordered_map<PlanKey, std::unique_ptr<Planned>, PlanKey::Hash> made_;
  struct Last {
    const PlanKey* asked = nullptr;
    const Planned* planned = nullptr;
  };
  std::array<Last, static_cast<std::size_t>(Collective::barrier) + 1> last_ = {};  // per collective, into made_

  // A plan for a call with its own counts or pairs; only the last few are kept.
  struct OneOffPlan {
    PlanKey asked;
    Planned planned;
  };
  static constexpr std::size_t most_passing = 8;
  std::vector<std::unique_ptr<OneOffPlan>> passing_;  // most recently used first
};

Counts counts_of(const Call&, Rank rank, Rank ranks);
std::size_t larger_bytes(const Call&, Rank ranks);  // of the larger of the two buffers
// The same on all ranks: whether to stage buffers that peers cannot read (schedule/stage_unreadable_buffers.h).
bool worth_showing(const Call&, Rank ranks);

}  // namespace trellis::ccl
