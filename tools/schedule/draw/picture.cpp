#include "tools/schedule/draw/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "schedule/proof/check_steps.h"
#include "text/refuse.h"
#include "tools/schedule/draw/diagram.h"
#include "tools/schedule/draw/step_contents.h"
#include "tools/schedule/schedule_summary.h"

namespace trellis::tools::draw {
namespace {

using namespace schedule;

constexpr Rank most_lanes = 64;
constexpr std::size_t most_moves = 4000;
constexpr std::size_t most_colours = 16;
constexpr std::size_t thicket = 48;            // transfers in one round that are too many to read
constexpr std::int64_t most_chunks = 1 << 22;  // touched by steps, or held by memory

std::string count(std::int64_t n, std::string_view word) { return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s"); }

// The wiring of a schedule that can be followed to its end.
StepWiring connected(const Schedule& s) {
  if (s.ranks() > most_lanes) text::refuse("{} ranks are too many to draw: expected at most {}", s.ranks(), most_lanes);
  // A file may claim any size, so it is checked before memory is allocated for its chunks.
  std::int64_t chunks = 0;
  for (Rank r = 0; r < s.ranks() && r < static_cast<Rank>(s.programs.size()); ++r) {
    chunks += cells(s.task, r).scratch + std::max(s.programs[r].scratch, 0);
    for (const Step& step : s.programs[r].steps) chunks += std::max(step.from.count, 0) + std::max(step.to.count, 0);
  }
  if (chunks > most_chunks) text::refuse("{} chunks are too many to draw: expected at most {}", chunks, most_chunks);
  StepWiring wiring;
  auto fault = StepWiring::connect(s, wiring);
  for (Rank r = 0; r < s.ranks() && !fault; ++r) fault = find_misfit(s.task, s.channels, r, s.programs[r]);
  if (!fault) fault = find_unequal_ends(s, wiring);
  if (fault) text::refuse("the schedule is faulty and can't be drawn: {}", fault->text);
  return wiring;
}

IndexSpan shown_rounds(const DrawOptions& wish, std::int32_t rounds) {
  if (!wish.rounds) return {1, rounds};
  if (wish.rounds->first < 1 || wish.rounds->first > std::max(rounds, 1))
    text::refuse("rounds {}..{}: the schedule has rounds 1..{}", wish.rounds->first, wish.rounds->last, rounds);
  return {wish.rounds->first, std::min(wish.rounds->last, rounds)};
}

class Painter {
 public:
  Painter(const Schedule& s, const DrawOptions& wish)
      : s_(s), wish_(wish), wiring_(connected(s)), rounds_(followed()), contents_(s, wiring_) {
    shown_ = shown_rounds(wish, rounds_.rounds);
    collect();
    words();
  }

  std::string paint() const { return diagram(arrange(scene_, wish_.down), words_); }

 private:
  StepRounds followed() const {
    auto found = step_rounds(s_, wiring_);
    if (!found) throw std::invalid_argument("the schedule can't be drawn: some of its steps can never start");
    return *std::move(found);
  }
  const Step& step(StepId id) const { return s_.programs[wiring_.rank(id)].steps[wiring_.step(id)]; }
  void choose_colours();
  std::vector<std::int64_t> blocks_of(StepId) const;
  void collect();
  std::int32_t chosen_channel() const;
  void add_moves(StepId send);
  void add_local(StepId);
  void words();
  void name_colours(const std::set<std::int64_t>& used, bool mixes);

  const Schedule& s_;
  const DrawOptions& wish_;
  StepWiring wiring_;
  StepRounds rounds_;
  StepContents contents_;
  IndexSpan shown_;
  std::int32_t channel_ = all_channels;
  Scene scene_;
  DiagramWords words_;
};

std::vector<std::int64_t> Painter::blocks_of(StepId id) const {
  std::vector<std::int64_t> found;
  for (const TrackedChunk& d : contents_.of(id)) found.push_back(block(s_.task, d));
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

void Painter::add_moves(StepId send) {
  const std::string carried = label(s_.task, contents_.of(send));
  bool shares = false;
  for (const StepId receive : {wiring_.partner(send), wiring_.second_partner(send)}) {
    if (receive == StepWiring::none) continue;
    const Step& to = step(receive);
    DrawnMove m{.send = send, .receive = receive, .from = wiring_.rank(send), .to = wiring_.rank(receive)};
    m.round = rounds_.round[send];
    m.channel = to.channel;
    m.tag = to.end.tag;
    m.adds = to.op == Op::recv_reduce;
    m.label = carried;
    m.shares = std::exchange(shares, true);
    m.blocks = blocks_of(send);
    if (m.shares) {
      scene_.moves.push_back(std::move(m));
      words_.moves.back() += fmt::format("; and  ⟶  {}", where(s_, wiring_.rank(receive), wiring_.step(receive)));
      words_.moves.emplace_back();
      continue;
    }
    words_.moves.push_back(fmt::format("round {}, channel {}: {}  ⟶  {}{}", m.round, m.channel,
                                       where(s_, m.from, wiring_.step(send)), where(s_, m.to, wiring_.step(receive)),
                                       carried.empty() ? "" : fmt::format("; data {}", carried)));
    scene_.moves.push_back(std::move(m));
  }
}

void Painter::add_local(StepId id) {
  const Rank rank = wiring_.rank(id);
  const auto blocks = blocks_of(id);
  const std::string carried = label(s_.task, contents_.of(id));
  scene_.locals.push_back({.step = id,
                           .rank = rank,
                           .round = rounds_.round[id],
                           .adds = step(id).op == Op::reduce,
                           .channel = step(id).channel,
                           .block = blocks.empty() ? 0 : blocks.front()});
  words_.locals.push_back(fmt::format("after round {}: {}{}", rounds_.round[id], where(s_, rank, wiring_.step(id)),
                                      carried.empty() ? "" : fmt::format("; data {}", carried)));
}

std::int32_t Painter::chosen_channel() const {
  if (wish_.channel) {
    if (*wish_.channel >= s_.channels)
      text::refuse("--channel {}: expected all, or 0 to {}", *wish_.channel, s_.channels - 1);
    return *wish_.channel;
  }
  if (s_.channels == 1) return all_channels;
  std::map<std::int32_t, std::size_t> sent;
  for (StepId id = 0; id < wiring_.count(); ++id)
    if (receives(step(id).op) && rounds_.round[id] >= shown_.first && rounds_.round[id] <= shown_.last)
      if (++sent[rounds_.round[id]] > thicket) return 0;
  return all_channels;
}

void Painter::collect() {
  scene_.ranks = s_.ranks();
  scene_.group = wish_.dims.size() > 1 ? wish_.dims.front() : 0;
  scene_.first = shown_.first, scene_.last = shown_.last;
  channel_ = chosen_channel();
  for (StepId id = 0; id < wiring_.count(); ++id) {
    const std::int32_t round = rounds_.round[id];
    const Op op = step(id).op;
    if (channel_ != all_channels && step(id).channel != channel_) continue;
    if (sends(op) && round >= shown_.first && round <= shown_.last) add_moves(id);
    if ((op == Op::copy || op == Op::reduce) && round >= shown_.first - 1 && round <= shown_.last) add_local(id);
  }
  if (scene_.moves.size() + scene_.locals.size() > most_moves)
    text::refuse(
        "{} transfers and local steps are too many to draw: expected at most {}; show "
        "some of the {} rounds, as with --rounds 1..4",
        scene_.moves.size() + scene_.locals.size(), most_moves, rounds_.rounds);
}

void Painter::words() {
  words_.heading =
      fmt::format("{} · {}", name(s_.task.operation.collective), s_.algorithm.empty() ? "?" : s_.algorithm);
  const ScheduleSummary all = summary(s_);
  auto& facts = words_.facts;
  facts.push_back(count(s_.ranks(), "rank"));
  if (wish_.dims.size() > 1) facts.back() += fmt::format(" ({})", shape_text(wish_.dims));
  if (rooted(s_.task.operation.collective)) facts.push_back(fmt::format("root {}", s_.task.operation.root));
  if (s_.channels > 1) facts.push_back(count(s_.channels, "channel"));
  facts.push_back(s_.task.operation.in_place ? "in place" : "out of place");
  facts.push_back(count(all.steps, "step"));
  facts.push_back(fmt::format("{} in {}", count(all.transfers, "transfer"), count(rounds_.rounds, "round")));
  facts.push_back(fmt::format("each rank sends {} chunks in {} messages", all.chunks.text(), all.messages.text()));
  if (shown_.first > 1 || shown_.last < rounds_.rounds)
    facts.push_back(fmt::format("shown: rounds {} to {}", shown_.first, shown_.last));
  if (channel_ != all_channels && s_.channels > 1)
    facts.push_back(fmt::format("shown: channel {} of {}; --channel all draws every one", channel_, s_.channels));
  for (const DrawnMove& m : scene_.moves)
    if (!m.label.empty()) words_.label_example = label_example(s_.task);
  words_.labels_mean = label_meaning(s_.task);
  words_.first_round = shown_.first;
  for (Rank r = 0; r < s_.ranks(); ++r) {
    std::vector<Rank> at;
    Rank rest = r;
    for (Rank d : wish_.dims) at.push_back(rest % d), rest /= d;
    words_.lanes.emplace_back(fmt::format("{}", r), at.size() > 1 ? fmt::format("({})", fmt::join(at, ",")) : "");
  }
  choose_colours();
}

void Painter::choose_colours() {
  std::set<std::int64_t> data;
  bool mixes = false;
  for (const DrawnMove& m : scene_.moves) {
    data.insert(m.blocks.begin(), m.blocks.end());
    mixes |= m.blocks.size() > 1;
  }
  for (const DrawnLocalStep& local : scene_.locals) data.insert(local.block);
  ColourBy tell = wish_.colours;
  if (tell == ColourBy::automatic) tell = data.size() > 1 ? ColourBy::data : ColourBy::sender;
  std::set<std::int64_t> used;
  const auto take = [&](std::int64_t n) {
    used.insert(n);
    return ink(n);
  };
  for (const DrawnMove& m : scene_.moves) {
    const bool several = tell == ColourBy::data && m.blocks.size() > 1;
    const std::int64_t one = m.blocks.empty() ? 0 : m.blocks.front();
    words_.move_inks.push_back(several                    ? mixed()
                               : tell == ColourBy::data   ? take(one)
                               : tell == ColourBy::sender ? take(m.from)
                                                          : take(m.channel));
  }
  for (const DrawnLocalStep& x : scene_.locals)
    words_.local_inks.push_back(ink(tell == ColourBy::data ? x.block : tell == ColourBy::sender ? x.rank : x.channel));
  if (tell == ColourBy::data) used = data;
  words_.colours_mean = tell == ColourBy::data     ? block_meaning(s_.task)
                        : tell == ColourBy::sender ? "from rank"
                                                   : "channel";
  name_colours(used, tell == ColourBy::data && mixes);
}

void Painter::name_colours(const std::set<std::int64_t>& used, bool mixes) {
  if (used.size() < 2) return;
  for (std::int64_t n : used) {
    if (words_.colours.size() == most_colours) {
      words_.colours_mean += fmt::format(" (of {}; colours come again)", used.size());
      break;
    }
    words_.colours.emplace_back(ink(n), fmt::format("{}", n));
  }
  if (mixes) words_.colours.emplace_back(mixed(), "several");
}

}  // namespace

std::string picture(const Schedule& s, const DrawOptions& wish) { return Painter(s, wish).paint(); }

}  // namespace trellis::tools::draw
