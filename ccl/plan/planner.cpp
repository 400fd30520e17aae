#include "ccl/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <system_error>

#include "ccl/plan/call_check.h"
#include "ccl/plan/message_mark.h"
#include "ccl/plan/schedule_file.h"
#include "ccl/plan/schedule_message_hash.h"
#include "kernels/types/fnv1a.h"
#include "schedule/collective_traits.h"
#include "schedule/proof/verify.h"
#include "text/refuse.h"

namespace trellis::ccl {
namespace {

constexpr std::size_t most_kept = 256;
constexpr std::size_t most_proofs = 512;
constexpr std::size_t most_files = 64;
constexpr Rank most_proved_here = 128;  // ranks; larger schedules are proved only by their algorithm's tests

// From so many bytes on, choose_by_shape() uses a ring between the hosts.
constexpr std::size_t least_ring_between_hosts = std::size_t{32} << 10;

constexpr schedule::UnreadableBuffers all_hidden{.input = true, .output = true};

// Limits for staging unreadable buffers. If a rank's block or share is smaller than the least given here, slots are as
// fast. If the larger buffer exceeds most_shown, the scratch, which is as large as both buffers, costs too much.
constexpr std::size_t least_block_shown = std::size_t{8} << 10;
constexpr std::size_t least_share_shown = std::size_t{32} << 10;
constexpr std::size_t most_shown = std::size_t{64} << 20;

SelectionTable selections_for(const Config& config) {
  return config.selections.empty() ? SelectionTable::built_in() : SelectionTable::from_file(config.selections);
}

// The algorithms that the user has fixed: "ring" for every collective that it serves, or
// "all_reduce=mesh,all_gather=ring*2".
std::map<Collective, AlgorithmConfig> fixed_by(std::string_view text) {
  std::map<Collective, AlgorithmConfig> fixed;
  if (text.empty()) return fixed;
  for (const std::string& word : schedule::split_at_commas(text)) {
    const std::string_view item = word;
    const std::size_t equals = item.find('=');
    const AlgorithmConfig config =
        schedule::algorithm_config_named(equals == std::string_view::npos ? item : item.substr(equals + 1));
    if (equals != std::string_view::npos)
      fixed[schedule::collective_named(item.substr(0, equals))] = config;
    else if (is_file(config))
      fixed[schedule_from_file(config, false).task.operation.collective] = config;
    else
      for (Collective c : schedule::algorithm_named(config.algorithm).serves) fixed[c] = config;
  }
  return fixed;
}

std::string in_words(const schedule::Task& t) {
  std::string text =
      fmt::format("{} on {} ranks, root {}", schedule::name(t.operation.collective), t.ranks, t.operation.root);
  if (t.operation.collective == Collective::send_recv) text += fmt::format(", peer {}", t.operation.peer);
  for (std::size_t i = 0; i < t.operation.pairs.size() && i < 4; ++i)
    text += fmt::format("{}{}>{}", i == 0 ? ", pairs " : " ", t.operation.pairs[i].source, t.operation.pairs[i].target);
  if (t.operation.pairs.size() > 4) text += fmt::format(" and {} more", t.operation.pairs.size() - 4);
  return fmt::format("{}, {}", text, t.operation.in_place ? "in place" : "out of place");
}

[[noreturn]] void fail(const schedule::Schedule& s, const std::string& why) {
  throw std::logic_error(fmt::format("the schedule of {} for {} is wrong: {}", s.algorithm,
                                     schedule::name(s.task.operation.collective), why));
}

void prove_made(const schedule::Schedule& s, int lanes) {
  const schedule::Report report = schedule::verify(s);
  if (!report.ok()) fail(s, report.text());
  if (!passes_in_order(s, lanes)) fail(s, "it needs messages of one lane out of order");
}

// For ranks in a single row, the lanes suffice for every algorithm. Other shapes can have more channels between two
// ranks than there are lanes.
bool fits_lanes(const AlgorithmConfig& config) { return config.dims.empty() && config.order.empty(); }

}  // namespace

BlockCounts counts_of(const Call& call, Rank rank, Rank ranks) {
  if (!schedule::counts_by_pair(call.operation.collective)) return {call.count, call.counts};
  const auto p = static_cast<std::size_t>(ranks);
  BlockCounts counts{0, std::vector<std::size_t>(p * p)};
  for (std::size_t r = 0; r < p; ++r) {
    counts.blocks[static_cast<std::size_t>(rank) * p + r] = call.counts[r];
    counts.blocks[r * p + static_cast<std::size_t>(rank)] = call.arriving_counts[r];
  }
  return counts;
}

std::size_t larger_bytes(const Call& call, Rank ranks) {
  std::size_t elements = call.count;
  if (schedule::counts_by_pair(call.operation.collective))
    elements = 0;  // ranks know different counts but must make the same choice
  else if (schedule::uneven(call.operation.collective))
    elements = std::accumulate(call.counts.begin(), call.counts.end(), std::size_t{0});
  else if (schedule::by_block(call.operation.collective))
    elements *= static_cast<std::size_t>(ranks);
  return elements * kernels::size_of(call.type);
}

bool worth_showing(const Call& call, Rank ranks) {
  if (ranks <= 2) return false;  // no peer reads a buffer twice, so staging saves nothing
  const std::size_t bytes = larger_bytes(call, ranks);
  const std::size_t least = schedule::by_block(call.operation.collective) ? least_block_shown : least_share_shown;
  return bytes <= most_shown && bytes >= least * static_cast<std::size_t>(ranks);
}

Planner::Planner(Rank rank, Rank ranks, TransportCapabilities paths, const Config& config, RanksByHost shape,
                 RankCores places)
    : rank_(rank),
      ranks_(ranks),
      paths_(paths),
      shape_(std::move(shape)),
      wire_(config.wire),
      rounding_(config.rounding),
      fixed_(fixed_by(config.algorithm)),
      selections_(selections_for(config)),
      machine_(config.machine),
      chooser_(ranks, paths, std::move(places)),
      given_(most_files, [](const auto& file) { return schedule_from_file(file.first, file.second); }),
      proved_(most_proofs, [this](const Traced& t) { return prove(t); }),
      concealed_(most_proofs, [this](const Concealed& c) { return prove_concealed(c); }) {}

Planner::Chosen Planner::chosen_by(const Call& call, bool in_place, const AlgorithmConfig& config) const {
  return {config, {.operation = operation_of(call, in_place), .ranks = ranks_}};
}

schedule::Request Planner::request(const Chosen& chosen) const {
  return schedule::request_by(chosen.config, {.operation = chosen.task.operation, .dims = {ranks_}});
}

// Why a schedule for this task cannot serve the call; empty: it can. If one of the two buffers is empty, in place or
// not makes no difference: only a broadcast's root has both, and counts can be 0.
std::string Planner::misfit(const schedule::Task& given, const Call& call, bool in_place) const {
  schedule::Task wanted = chosen_by(call, in_place, {}).task;
  wanted.pieces = given.pieces, wanted.even = given.even;
  const BufferBytes e = extents_of(call, rank_, ranks_);
  if (e.input == 0 || e.output == 0) wanted.operation.in_place = given.operation.in_place;
  schedule::Task has = given;
  for (schedule::Task* const task : {&wanted, &has})
    std::ranges::sort(task->operation.pairs, {}, &schedule::Pair::source);  // each is given once
  if (wanted != has) return fmt::format("it is for {}, and not for {}", in_words(given), in_words(wanted));
  if (divides(given, {call.count, {}})) return "";
  return fmt::format("it cuts a block into {} equal chunks: {} elements do not divide", given.pieces, call.count);
}

// Why the config cannot serve the call; empty: it can.
std::string Planner::refusal(const AlgorithmConfig& config, const Call& call, bool in_place) const {
  if (is_file(config)) return misfit(given_({config, in_place}).task, call, in_place);
  const schedule::Algorithm& algorithm = schedule::algorithm_named(config.algorithm);
  const schedule::Request r = request(chosen_by(call, in_place, config));
  if (config.channels > paths_.lanes) return fmt::format("there are {} lanes", paths_.lanes);
  if (r.ranks() != ranks_) return fmt::format("its shape has {} ranks", r.ranks());
  if (const std::string why = schedule::refusal(algorithm, r); !why.empty()) return why;
  return divides(schedule::task_of(algorithm, r), {call.count, {}}) ? "" : "the count does not divide into its chunks";
}

// For ranks on several hosts: prefers configs that move the least between hosts, then those with the fewest messages.
std::optional<AlgorithmConfig> Planner::choose_by_shape(const Call& call, bool in_place) const {
  if (shape_.dims.size() < 2) return std::nullopt;
  const bool small = larger_bytes(call, ranks_) < least_ring_between_hosts;
  for (const char* between : {small ? "recursive_doubling" : "ring", "ring", "direct"}) {
    const AlgorithmConfig config{
        .algorithm = "hierarchical", .levels = {"direct", between}, .dims = shape_.dims, .numbering = shape_.numbering};
    if (refusal(config, call, in_place).empty()) return config;
  }
  return std::nullopt;
}

int Planner::cores() const { return std::min(chooser_.places().cores, static_cast<int>(ranks_)); }

// The model chooses if the table has no rules, or has rules that were measured with fewer cores than there are here.
std::span<const PredictedTime> Planner::predicted(const Call& call) const {
  if (machine_ != Config().machine || shape_.dims.size() > 1 || !chooser_.models(call.operation.collective)) return {};
  const bool has_rules = selections_.nearest(call.operation.collective, ranks_, machine_) != 0 ||
                         selections_.nearest(call.operation.collective, ranks_, any_machine) != 0;
  const int own = cores(), measured = selections_.measured_cores(call.operation.collective, ranks_, machine_, own);
  if (has_rules && (measured == 0 || own <= measured)) return {};
  return chooser_.ranked(call);
}

SelectedConfig Planner::choice(const Call& call, bool in_place) const {
  const std::lock_guard lock(making_);
  return decide(call, in_place);
}

SelectedConfig Planner::decide(const Call& call, bool in_place) const {
  if (const auto fixed = fixed_.find(call.operation.collective); fixed != fixed_.end()) {
    const std::string why = refusal(fixed->second, call, in_place);
    if (why.empty()) return {fixed->second};
    text::refuse("{} was asked for, but can't serve {} of {} on {} ranks: {}", text_of(fixed->second),
                 schedule::name(call.operation.collective), call.count, ranks_, why);
  }
  if (const std::optional<AlgorithmConfig> config = choose_by_shape(call, in_place)) return {*config};
  for (const PredictedTime& p : predicted(call))
    if (refusal(p.config, call, in_place).empty()) return {p.config, true};
  for (const SelectionRule& rule : selections_.candidates(call.operation.collective, ranks_, larger_bytes(call, ranks_),
                                                          call.type, machine_, cores())) {
    AlgorithmConfig config = rule.config;
    if (!is_file(config) && config.dims.empty() && config.order.empty()) config.numbering = shape_.numbering;
    if (refusal(config, call, in_place).empty()) return {config};
  }
  for (const auto& [name, algorithm] : schedule::algorithms())
    if (refusal({name}, call, in_place).empty()) return {{name}};
  text::refuse("no algorithm serves {} on {} ranks", schedule::name(call.operation.collective), ranks_);
}

kernels::DType Planner::wire_of(const Call& c) const {
  if (wire_ == kernels::DType::f32) return c.type;
  using enum kernels::Reduction;
  const bool adds = c.op.kind == sum || c.op.kind == avg || c.op.kind == scaled_sum;
  const bool narrows = c.type == kernels::DType::f32 && (!schedule::reduces(c.operation.collective) || adds);
  return narrows && c.operation.collective != Collective::barrier ? wire_ : c.type;
}

bool Planner::traces(const Call& c) const {
  if (wire_ == kernels::DType::f32 && rounding_ != kernels::Rounding::stochastic) return false;
  const bool narrow = kernels::is_float(c.type) && c.type != kernels::DType::f32 && c.type != kernels::DType::f64;
  return wire_of(c) != c.type ||
         (narrow && schedule::reduces(c.operation.collective) && rounding_ == kernels::Rounding::stochastic);
}

// The whole schedule, adapted to this transport's lanes.
schedule::FifoOrderedSchedule Planner::written_out(const Chosen& chosen) const {
  if (is_file(chosen.config))
    return schedule::queued(given_({chosen.config, chosen.task.operation.in_place}), paths_.lanes);
  schedule::Schedule made = schedule::make(schedule::algorithm_named(chosen.config.algorithm), request(chosen));
  if (fits_lanes(chosen.config) || passes_in_order(made, paths_.lanes)) return {std::move(made), {}};
  return schedule::queued(made, paths_.lanes);
}

Planner::Proved Planner::part_of(const schedule::FifoOrderedSchedule& q, bool traced) const {
  const auto rank = static_cast<std::size_t>(rank_);
  Proved part{q.schedule.task, q.schedule.programs[rank]};
  if (!q.origins.empty()) part.origins_of_steps = q.origins[rank];
  if (traced) part.origins = origins_of(q.schedule, rank_);
  return part;
}

// Every rank proves a schedule from a file, since the ranks may have read different files.
Planner::Proved Planner::prove(const Traced& t) const {
  const AlgorithmConfig& config = t.chosen.config;
  if (is_file(config)) {
    const schedule::Schedule& given = given_({config, t.chosen.task.operation.in_place});
    if (const schedule::Report report = schedule::verify(given); !report.ok())
      text::refuse("{} is wrong: {}", text_of(config), report.text());
    const schedule::FifoOrderedSchedule queued = written_out(t.chosen);
    Proved part = part_of(queued, t.traced);
    part.schedule = message_hash(queued.schedule);
    return part;
  }
  if (rank_ == 0 && ranks_ <= most_proved_here) prove_made(written_out(t.chosen).schedule, paths_.lanes);
  if (t.traced || !fits_lanes(config)) return part_of(written_out(t.chosen), t.traced);
  const schedule::Algorithm& algorithm = schedule::algorithm_named(config.algorithm);
  const schedule::Request r = request(t.chosen);
  return {schedule::task_of(algorithm, r), schedule::make_program(algorithm, r, rank_)};
}

// Proves the schedule with these buffers hidden on every rank. make() has it proved with all buffers hidden, and with
// those that are hidden on this rank. What one rank hides does not change what the others see, so the schedule is right
// as well if each rank hides different buffers.
bool Planner::prove_concealed(const Concealed& c) const {
  if (rank_ != 0 || ranks_ > most_proved_here) return true;
  prove_made(schedule::stage_unreadable_buffers(written_out(c.chosen).schedule, c.hidden), paths_.lanes);
  return true;
}

CallPlan Planner::make(const PlanKey& asked) {
  const std::lock_guard lock(making_);
  const Call& call = asked.call();
  const auto& [in_place, hidden] = asked.manner();
  const AlgorithmConfig config = decide(call, in_place).config;
  const Chosen chosen = chosen_by(call, in_place, config);
  const Proved& p = proved_({chosen, traces(call)});
  if (worth_showing(call, ranks_) && !p.origins) {
    concealed_({chosen, all_hidden});
    if (hidden.any()) concealed_({chosen, hidden});
  }
  return made(asked, config, p);
}

// Rounds are for programs that are alike on all ranks: whether a message goes over a lane or in a round must be the
// same at its two ends. This gives no room for rounds to calls and schedules that never use them; for the others,
// made() asks alike_on_all() if the program has the form of rounds.
TransportCapabilities Planner::paths_for(const PlanKey& asked, const AlgorithmConfig& config, const Proved& p) const {
  const Collective collective = asked.call().operation.collective;
  const bool plain = !is_file(config) && !p.schedule && !p.origins && !schedule::uneven(collective) &&
                     collective != Collective::permute;
  return plain ? paths_ : TransportCapabilities{.lanes = paths_.lanes};
}

// The mark covers a hash of the schedule, since ranks with different algorithms or files could exchange messages of
// matching sizes and all get wrong results. For an algorithm it is a hash of the config, from which the schedule
// follows. For a schedule from a file or a caller it is a hash of the messages alone: what a rank does by itself may
// differ.
CallPlan Planner::made(const PlanKey& asked, const AlgorithmConfig& config, const Proved& p) {
  const Call& call = asked.call();
  const schedule::UnreadableBuffers hidden = asked.manner().hidden;
  const ProgramContributors* const origins = p.origins ? &*p.origins : nullptr;
  const auto compiled = [&](const schedule::Program& program, const TransportCapabilities& paths) {
    return compile(p.task, program, rank_, counts_of(call, rank_, ranks_), kernels::size_of(call.type), paths, origins);
  };
  const kernels::DType wire = wire_of(call);
  const std::uint64_t schedule = p.schedule ? *p.schedule : kernels::fnv1a(text_of(config));
  CallPlan planned{
      .config = kept(config), .wire = wire, .schedule = schedule, .mark = mark_of_call(call, wire, schedule)};
  std::vector<CompiledStep>& steps = planned.compiled.steps;
  planned.compiled = compiled(p.program, paths_for(asked, config, p));
  if (!planned.compiled.rounds.empty() &&
      !alike_on_all(config, request(chosen_by(call, asked.manner().in_place, config))))
    planned.compiled.rounds = {};
  // Stages hidden buffers, unless there are contributors (`origins`), which describe the unstaged program, or rounds,
  // whose messages are written to memory that all can read.
  if (hidden.any() && origins == nullptr && planned.compiled.rounds.empty()) {
    const schedule::StagedProgram shown = schedule::stage_unreadable_buffers(p.task, rank_, p.program, hidden);
    planned.compiled = compiled(shown.program, {.lanes = paths_.lanes});
    for (CompiledStep& step : steps) step.origin = shown.origins[static_cast<std::size_t>(step.origin)];
  }
  if (!p.origins_of_steps.empty())
    for (CompiledStep& step : steps) step.origin = p.origins_of_steps[static_cast<std::size_t>(step.origin)];
  return planned;
}

const CallPlan& Planner::plan(const Call& call, bool in_place, schedule::UnreadableBuffers hidden) {
  const BufferTraits manner{in_place, hidden};
  Last& last = last_[static_cast<std::size_t>(call.operation.collective)];
  if (last.asked != nullptr && last.asked->is(call, manner)) return *last.planned;
  if (schedule::uneven(call.operation.collective) || call.operation.collective == Collective::permute)
    return plan_passing(call, manner);
  const PlanKey asked(call, manner);
  auto found = made_.find(asked);
  if (found == made_.end()) {
    auto fresh = std::make_unique<CallPlan>(make(asked));
    if (made_.size() == most_kept) {
      last_ = {};
      made_.clear();
    }
    found = made_.emplace(asked, std::move(fresh)).first;
  }
  last = {&found->first, found->second.get()};
  return *last.planned;
}

const CallPlan& Planner::plan_passing(const Call& call, const BufferTraits& manner) {
  auto at = std::ranges::find_if(passing_, [&](const auto& p) { return p->asked.is(call, manner); });
  if (at == passing_.end()) {
    const PlanKey asked(call, manner);
    auto fresh = std::make_unique<OneOffPlan>(OneOffPlan{asked, make(asked)});
    if (passing_.size() == most_passing) passing_.pop_back();
    at = passing_.insert(passing_.end(), std::move(fresh));
  }
  std::rotate(passing_.begin(), at, at + 1);
  return passing_.front()->planned;
}

std::shared_ptr<const CallPlan> Planner::plan(const Call& call, bool in_place, const schedule::Schedule& s) {
  if (const std::string why = misfit(s.task, call, in_place); !why.empty())
    text::refuse("the schedule can't serve: {}", why);
  const schedule::Report report = schedule::verify(s);
  if (!report.ok()) throw std::invalid_argument("the schedule is wrong: " + report.text());
  const schedule::FifoOrderedSchedule queued = schedule::queued(s, paths_.lanes);
  Proved own = part_of(queued, traces(call));
  own.schedule = message_hash(queued.schedule);
  const std::lock_guard lock(making_);
  return std::make_shared<CallPlan>(made(PlanKey(call, {in_place, {}}), {s.algorithm, s.channels, 1}, own));
}

}  // namespace trellis::ccl
