#include "ccl/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>
#include <system_error>
#include <tuple>

#include "ccl/given.h"
#include "ccl/mark.h"
#include "schedule/verify.h"

namespace trellis::ccl {
namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t most_kept = 256;
constexpr Rank most_proved_here = 128;  // ranks; larger schedules are proved by the tests of their algorithm alone

constexpr schedule::Hidden all_hidden{.input = true, .output = true};

// Of what peers can't read: below so much for a rank slots are as quick, above so much in the larger buffer the scratch
// that it takes, as large as both, is too much.
constexpr std::size_t least_block_shown = std::size_t{8} << 10;
constexpr std::size_t least_share_shown = std::size_t{32} << 10;
constexpr std::size_t most_shown = std::size_t{64} << 20;

Selections selections_for(const Config& config) {
  if (config.selections.empty()) return Selections::built_in();
  std::ifstream file(config.selections);
  if (!file) throw std::system_error(errno, std::generic_category(), config.selections);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  try {
    return Selections::read(text);
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(fmt::format("{}: {}", config.selections, e.what()));
  }
}

// "ring" for whatever it serves, or "all_reduce=mesh,all_gather=ring*2".
std::map<Collective, Choice> fixed_by(std::string_view text) {
  std::map<Collective, Choice> fixed;
  if (text.empty()) return fixed;
  for (const std::string& word : schedule::split_at_commas(text)) {
    const std::string_view item = word;
    const std::size_t equals = item.find('=');
    const Choice choice = schedule::way_named(equals == std::string_view::npos ? item : item.substr(equals + 1));
    if (equals != std::string_view::npos)
      fixed[schedule::collective_named(item.substr(0, equals))] = choice;
    else if (is_file(choice))
      fixed[given_schedule(choice).task.collective] = choice;
    else
      for (Collective c : schedule::algorithm_named(choice.algorithm).serves) fixed[c] = choice;
  }
  return fixed;
}

std::uint64_t mark_of(const Call& c, kernels::DType wire) {
  std::uint64_t h = mixed(c.count, static_cast<std::uint64_t>(c.collective) | static_cast<std::uint64_t>(c.type) << 8 |
                                       static_cast<std::uint64_t>(wire) << 16);
  if (schedule::rooted(c.collective)) h = mixed(h, static_cast<std::uint64_t>(c.root) + 1);
  if (c.collective != Collective::all_to_all_v)
    for (std::size_t n : c.counts) h = mixed(h, n);
  return h;
}

std::string in_words(const schedule::Task& t) {
  return fmt::format("{} on {} ranks, root {}, {}", schedule::name(t.collective), t.ranks, t.root,
                     t.in_place ? "in place" : "out of place");
}

[[noreturn]] void fail(const schedule::Schedule& s, const std::string& why) {
  throw std::logic_error(
      fmt::format("the schedule of {} for {} is wrong: {}", s.algorithm, schedule::name(s.task.collective), why));
}

void prove(const schedule::Schedule& s, int lanes) {
  const schedule::Report report = schedule::verify(s);
  if (!report.ok()) fail(s, report.text());
  if (!runs_in_order(s, lanes)) fail(s, "it needs messages of one lane out of order");
}

}  // namespace

Counts counts_of(const Call& call, Rank rank, Rank ranks) {
  if (call.collective != Collective::all_to_all_v) return {call.count, call.counts};
  const auto p = static_cast<std::size_t>(ranks);
  Counts counts{0, std::vector<std::size_t>(p * p)};
  for (std::size_t r = 0; r < p; ++r) {
    counts.blocks[static_cast<std::size_t>(rank) * p + r] = call.counts[r];
    counts.blocks[r * p + static_cast<std::size_t>(rank)] = call.arriving_counts[r];
  }
  return counts;
}

std::size_t larger_bytes(const Call& call, Rank ranks) {
  std::size_t elements = call.count;
  if (call.collective == Collective::all_to_all_v)
    elements = 0;  // ranks know different counts, and must choose alike
  else if (schedule::uneven(call.collective))
    elements = std::accumulate(call.counts.begin(), call.counts.end(), std::size_t{0});
  else if (schedule::by_block(call.collective))
    elements *= static_cast<std::size_t>(ranks);
  return elements * kernels::size_of(call.type);
}

bool worth_showing(const Call& call, Rank ranks) {
  if (ranks <= 2) return false;  // nothing is sent twice
  const std::size_t bytes = larger_bytes(call, ranks);
  const std::size_t least = schedule::by_block(call.collective) ? least_block_shown : least_share_shown;
  return bytes <= most_shown && bytes >= least * static_cast<std::size_t>(ranks);
}

Planner::Planner(Rank rank, Rank ranks, int lanes, const Config& config)
    : rank_(rank),
      ranks_(ranks),
      lanes_(lanes),
      wire_(config.wire),
      rounding_(config.rounding),
      fixed_(fixed_by(config.algorithm)),
      selections_(selections_for(config)),
      machine_(config.machine) {}

schedule::Request Planner::request(const Call& call, bool in_place, const Choice& choice) const {
  return schedule::request_by(choice, {.collective = call.collective,
                                       .dims = {ranks_},
                                       .root = call.root,
                                       .peer = call.peer,
                                       .pairs = call.pairs,
                                       .in_place = in_place});
}

const schedule::Schedule& Planner::given(const Choice& choice) const {
  const auto found = given_.find(choice.algorithm);
  return found != given_.end() ? found->second : given_.emplace(choice.algorithm, given_schedule(choice)).first->second;
}

// One row's lanes suit every algorithm; other shapes can have more channels between two ranks than there are lanes.
bool Planner::in_order(const Choice& choice, const schedule::Request& r) const {
  if (choice.dims.empty() && choice.order.empty()) return true;
  const auto [found, fresh] = in_order_.try_emplace(Name{text_of(choice), r.collective, r.root, r.in_place, false});
  if (fresh) found->second = runs_in_order(schedule::make(choice.algorithm, r), lanes_);
  return found->second;
}

// Empty when it serves.
std::string Planner::refusal(const Choice& choice, const Call& call, bool in_place) const {
  if (is_file(choice)) {
    const schedule::Task& task = given(choice).task;
    schedule::Task wanted = schedule::conditions(request(call, in_place, choice), task.pieces);
    wanted.even = task.even;
    if (wanted != task) return "it is for " + in_words(task);
    return divides(task, {call.count, {}}) ? "" : "the count does not divide into its chunks";
  }
  const schedule::Algorithm& algorithm = schedule::algorithm_named(choice.algorithm);
  const schedule::Request r = request(call, in_place, choice);
  if (choice.channels > lanes_) return fmt::format("there are {} lanes", lanes_);
  if (r.ranks() != ranks_) return fmt::format("its shape has {} ranks", r.ranks());
  if (const std::string why = schedule::refusal(algorithm, r); !why.empty()) return why;
  if (!in_order(choice, r)) return "it needs messages of one lane out of order";
  return divides(schedule::task_of(algorithm, r), {call.count, {}}) ? "" : "the count does not divide into its chunks";
}

Choice Planner::choose(const Call& call, bool in_place) const {
  if (const auto fixed = fixed_.find(call.collective); fixed != fixed_.end()) {
    const std::string why = refusal(fixed->second, call, in_place);
    if (why.empty()) return fixed->second;
    throw std::invalid_argument(fmt::format("{} was asked for, but can't serve {} of {} on {} ranks: {}",
                                            text_of(fixed->second), schedule::name(call.collective), call.count, ranks_,
                                            why));
  }
  for (const Choice& choice :
       selections_.choices(call.collective, ranks_, larger_bytes(call, ranks_), call.type, machine_))
    if (refusal(choice, call, in_place).empty()) return choice;
  for (const auto& [name, algorithm] : schedule::algorithms())
    if (refusal({name}, call, in_place).empty()) return {name};
  throw std::invalid_argument(
      fmt::format("no algorithm serves {} on {} ranks", schedule::name(call.collective), ranks_));
}

kernels::DType Planner::wire_of(const Call& c) const {
  if (wire_ == kernels::DType::f32) return c.type;
  using enum kernels::Reduction;
  const bool adds = c.op.kind == sum || c.op.kind == avg || c.op.kind == scaled_sum;
  const bool narrows = c.type == kernels::DType::f32 && (!schedule::reduces(c.collective) || adds);
  return narrows && c.collective != Collective::barrier ? wire_ : c.type;
}

bool Planner::traces(const Call& c) const {
  if (wire_ == kernels::DType::f32 && rounding_ != kernels::Rounding::stochastic) return false;
  const bool narrow = kernels::is_float(c.type) && c.type != kernels::DType::f32 && c.type != kernels::DType::f64;
  return wire_of(c) != c.type ||
         (narrow && schedule::reduces(c.collective) && rounding_ == kernels::Rounding::stochastic);
}

const Planner::Proved& Planner::proved(const Choice& choice, const schedule::Request& r, bool traced) {
  const Name name{text_of(choice), r.collective, r.root, r.in_place, traced};
  const bool kept = r.pairs.empty();
  if (const auto found = proved_.find(name); kept && found != proved_.end()) return found->second;
  if (is_file(choice)) {
    const schedule::Schedule& s = given(choice);
    if (const schedule::Report report = schedule::verify(s); !report.ok())
      throw std::invalid_argument(fmt::format("{} is wrong: {}", text_of(choice), report.text()));
    if (!runs_in_order(s, lanes_))
      throw std::invalid_argument(fmt::format("{} needs messages of one channel out of order", text_of(choice)));
    Proved fresh{s.task, s.programs[static_cast<std::size_t>(rank_)]};
    if (traced) fresh.origins = origins_of(s, rank_);
    return proved_[name] = std::move(fresh);
  }
  const schedule::Algorithm& algorithm = schedule::algorithm_named(choice.algorithm);
  if (rank_ == 0 && ranks_ <= most_proved_here) prove(schedule::make(algorithm, r), lanes_);
  Proved fresh{schedule::task_of(algorithm, r), schedule::make_program(algorithm, r, rank_)};
  if (traced) fresh.origins = origins_of(schedule::make(algorithm, r), rank_);
  return proved_[name] = std::move(fresh);
}

// With everything hidden, as it may be on other ranks, and with what is hidden here: a rank's program changes nothing
// for the others, so that mixtures are right too.
void Planner::prove_shown(const Choice& choice, const schedule::Request& r, schedule::Hidden hidden) {
  if (rank_ != 0 || ranks_ > most_proved_here) return;
  for (const schedule::Hidden h : {all_hidden, hidden}) {
    const auto name = std::tuple(Name{text_of(choice), r.collective, r.root, r.in_place, false}, h.input, h.output);
    if (!h.any() || (r.pairs.empty() && shown_.contains(name))) continue;
    const schedule::Schedule whole =
        is_file(choice) ? given(choice) : schedule::make(schedule::algorithm_named(choice.algorithm), r);
    prove(schedule::shown(whole, h), lanes_);
    shown_.insert(name);
  }
}

Planned Planner::make(const Call& call, bool in_place, schedule::Hidden hidden) {
  const Choice choice = choose(call, in_place);
  const schedule::Request r = request(call, in_place, choice);
  const Proved& p = proved(choice, r, traces(call));
  if (worth_showing(call, ranks_) && !p.origins) prove_shown(choice, r, hidden);
  return made(call, choice, p.task, p.program, p.origins ? &*p.origins : nullptr, hidden);
}

Planned Planner::made(const Call& call, const Choice& choice, const schedule::Task& task,
                      const schedule::Program& program, const Origins* origins, schedule::Hidden hidden) {
  const auto compiled = [&](const schedule::Program& p) {
    return compile(task, p, rank_, counts_of(call, rank_, ranks_), line_bytes / kernels::size_of(call.type), lanes_,
                   origins);
  };
  Planned planned{.choice = kept(choice), .wire = wire_of(call), .mark = mark_of(call, wire_of(call))};
  if (!hidden.any() || origins != nullptr) {  // origins are of the program as it is
    planned.compiled = compiled(program);
    return planned;
  }
  const schedule::Shown shown = schedule::shown(task, rank_, program, hidden);
  planned.compiled = compiled(shown.program);
  for (FlatStep& step : planned.compiled.steps) step.origin = shown.origins[static_cast<std::size_t>(step.origin)];
  return planned;
}

const Planned& Planner::plan(const Call& call, bool in_place, schedule::Hidden hidden) {
  Last& last = last_[static_cast<std::size_t>(call.collective)];
  if (last.planned != nullptr && call.count == last.key.count && call.root == last.key.root &&
      call.type == last.key.type && call.op.kind == last.op && in_place == last.key.in_place &&
      hidden == last.key.hidden)
    return *last.planned;
  const Key key{call.count, call.root, call.collective, call.type, in_place, traces(call), hidden};
  if (schedule::uneven(call.collective) || call.collective == Collective::permute) return plan_passing(call, key);
  auto found = made_.find(key);
  if (found == made_.end()) {
    auto fresh = std::make_unique<Planned>(make(call, in_place, hidden));
    if (made_.size() == most_kept) {
      last_ = {};
      made_.clear();
    }
    found = made_.emplace(key, std::move(fresh)).first;
  }
  last = {key, call.op.kind, found->second.get()};
  return *last.planned;
}

const Planned& Planner::plan_passing(const Call& call, const Key& key) {
  auto at = std::ranges::find_if(passing_, [&](const auto& p) {
    return p->key == key && p->counts == call.counts && p->arriving_counts == call.arriving_counts &&
           p->pairs == call.pairs;
  });
  if (at == passing_.end()) {
    auto fresh = std::make_unique<Passing>(
        Passing{key, call.pairs, call.counts, call.arriving_counts, make(call, key.in_place, key.hidden)});
    if (passing_.size() == most_passing) passing_.pop_back();
    at = passing_.insert(passing_.end(), std::move(fresh));
  }
  std::rotate(passing_.begin(), at, at + 1);
  return passing_.front()->planned;
}

std::shared_ptr<const Planned> Planner::plan(const Call& call, bool in_place, const schedule::Schedule& s) {
  if (s.ranks() != ranks_ || s.task.collective != call.collective || s.task.in_place != in_place ||
      s.task.root != call.root)
    throw std::invalid_argument(fmt::format("the schedule is for {}; the call is {} on {} ranks, root {}, {}",
                                            in_words(s.task), schedule::name(call.collective), ranks_, call.root,
                                            in_place ? "in place" : "out of place"));
  if (!divides(s.task, {call.count, {}}))
    throw std::invalid_argument(fmt::format("the schedule cuts a block into {} equal chunks: {} elements do not divide",
                                            s.task.pieces, call.count));
  const schedule::Report report = schedule::verify(s);
  if (!report.ok()) throw std::invalid_argument("the schedule is wrong: " + report.text());
  if (!runs_in_order(s, lanes_)) throw std::invalid_argument("the schedule needs messages of one channel out of order");
  std::optional<Origins> origins;
  if (traces(call)) origins = origins_of(s, rank_);
  return std::make_shared<Planned>(made(call, {s.algorithm, s.channels, 1}, s.task,
                                        s.programs[static_cast<std::size_t>(rank_)], origins ? &*origins : nullptr));
}

}  // namespace trellis::ccl
