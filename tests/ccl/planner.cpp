// A planner that was asked for any calls in any order plans each call as a new planner does.
#include "ccl/plan/planner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <set>

#include "ccl/plan/call_check.h"
#include "schedule/algorithms/algorithm_config.h"
#include "schedule/formats/text.h"

namespace trellis::ccl {
namespace {

constexpr int lanes = 4;

std::string text_of(const BufferRange& p) {
  return fmt::format(" {}{}+{}", static_cast<int>(p.buffer), p.first, p.elements);
}

// Everything in a plan that affects its run, as text.
std::string text_of(const CallPlan& p) {
  const CompiledProgram& c = p.compiled;
  std::string text = fmt::format("{} wire {} mark {:x}\n", text_of(*p.config), static_cast<int>(p.wire), p.mark);
  text += fmt::format("scratch {} in {} out {}\n", c.scratch_elements, c.input_elements, c.output_elements);
  for (std::size_t i = 0; i < c.steps.size(); ++i) {
    const CompiledStep& s = c.steps[i];
    text += fmt::format("{}{}{} waits {} ends {} origin {}:", static_cast<int>(s.op), text_of(s.to), text_of(s.from),
                        c.ahead[i].waits, c.ahead[i].ends, s.origin);
    for (std::uint32_t k = 0; k < s.further_count; ++k) text += text_of(c.places[s.further + k]);
    for (std::uint32_t k = 0; k < s.follow_count; ++k) text += fmt::format(" >{}", c.followers[s.follows + k]);
    text += "\n";
  }
  for (const LaneMessages& l : c.lines) {
    text += fmt::format("{} {} {}:", l.peer, l.lane, l.receives);
    for (std::uint32_t k = 0; k < l.count; ++k) text += fmt::format(" {}", c.messages[l.first + k]);
    text += "\n";
  }
  for (const ContributorRun& r : c.runs) text += fmt::format("{} {} {:x} {}\n", r.elements, r.first, r.of, r.rounds);
  return text;
}

struct Asking {
  Call call;
  bool in_place = false;
  schedule::UnreadableBuffers hidden;
};

std::string planned_by(Planner& planner, const Asking& a) {
  try {
    return text_of(planner.plan(a.call, a.in_place, a.hidden));
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

std::string in_words(const Asking& a) {
  std::string text = fmt::format("{} {} {} {} root {} peer {}{}{}{}", schedule::name(a.call.operation.collective),
                                 a.call.count, kernels::name(a.call.type), kernels::name(a.call.op.kind),
                                 a.call.operation.root, a.call.operation.peer, a.in_place ? " in place" : "",
                                 a.hidden.input ? " hidden input" : "", a.hidden.output ? " hidden output" : "");
  for (const schedule::Pair& p : a.call.operation.pairs) text += fmt::format(" {}>{}", p.source, p.target);
  for (const std::size_t c : a.call.counts) text += fmt::format(" {}", c);
  return text;
}

class Asker {
 public:
  explicit Asker(unsigned seed) : random_(seed) {}

  template <class Value>
  Value one_of(std::initializer_list<Value> values) {
    return *(values.begin() + random_() % values.size());
  }

  Asking next(Rank ranks) {
    using enum Collective;
    Asking a;
    Call& c = a.call;
    c.operation.collective = schedule::collectives()[random_() % schedule::collectives().size()];
    c.count = c.operation.collective == barrier ? 0 : one_of<std::size_t>({0, 1, 24, 24, 50'000});
    c.type = one_of({kernels::DType::f32, kernels::DType::bf16});
    c.op = {one_of({kernels::Reduction::sum, kernels::Reduction::max, kernels::Reduction::scaled_sum}), 0.5};
    if (schedule::rooted(c.operation.collective) || c.operation.collective == send_recv) c.operation.root = rank(ranks);
    if (c.operation.collective == send_recv) c.operation.peer = rank(ranks);
    if (c.operation.collective == permute) c.operation.pairs = pairs(ranks);
    if (schedule::uneven(c.operation.collective)) c.counts = counts(ranks), c.count = 0;
    if (c.operation.collective == all_to_all_v) c.arriving_counts = counts(ranks);
    a.in_place = c.operation.collective != all_to_all_v && c.operation.collective != send_recv && random_() % 3 == 0;
    a.hidden = {random_() % 4 == 0, random_() % 4 == 0};
    return a;
  }

 private:
  Rank rank(Rank ranks) { return static_cast<Rank>(random_() % static_cast<unsigned>(ranks)); }

  // Pairs from a small set, the empty one included, so that calls repeat.
  std::vector<schedule::Pair> pairs(Rank ranks) {
    std::vector<schedule::Pair> all;
    const Rank by = rank(ranks);
    for (Rank r = 0; r < ranks; ++r)
      if (random_() % 3 == 0) all.push_back({r, (r + by) % ranks});
    return all;
  }

  std::vector<std::size_t> counts(Rank ranks) {
    std::vector<std::size_t> all;
    for (Rank r = 0; r < ranks; ++r) all.push_back(one_of<std::size_t>({0, 5}));
    return all;
  }

  std::mt19937 random_;
};

void expect_as_fresh(Rank ranks, const Config& config, int calls) {
  for (Rank rank = 0; rank < ranks; ++rank) {
    Asker asker(static_cast<unsigned>(rank + 1));
    Planner one(rank, ranks, {lanes}, config);
    for (int i = 0; i < calls; ++i) {
      const Asking asking = asker.next(ranks);
      Planner fresh(rank, ranks, {lanes}, config);
      ASSERT_EQ(planned_by(one, asking), planned_by(fresh, asking)) << "call " << i << ": " << in_words(asking);
    }
  }
}

TEST(Planner, PlansAsAFreshOneDoes) { expect_as_fresh(3, {}, 400); }

TEST(Planner, PlansWithOriginsAsAFreshOneDoes) {
  expect_as_fresh(3, {.rounding = kernels::Rounding::stochastic, .wire = kernels::DType::bf16}, 200);
}

TEST(RanksByHost, IsFoundWhateverTheOrderOfRanks) {
  const auto shape = [](const std::vector<Rank>& host) {
    const RanksByHost s = shape_of(host);
    return fmt::format("{} {}", fmt::join(s.dims, "x"), schedule::numbering_text(s.numbering));
  };
  EXPECT_EQ(shape({0, 0, 0, 3, 3, 3}), "3x2 ");
  EXPECT_EQ(shape({0, 1, 0, 1, 0, 1}), "3x2 0-4+2.1-5+2");
  EXPECT_EQ(shape({0, 1, 2, 0, 1, 2}), "2x3 0.3.1.4.2.5");
  EXPECT_EQ(shape({0, 1, 1, 0}), "2x2 0.3.1.2");
  EXPECT_EQ(shape({0, 0, 2}), "3 ");
  EXPECT_EQ(shape({0, 1, 1, 0, 0}), "5 0.3.4.1.2");  // hosts differ in size: one dimension, numbered host by host
  EXPECT_EQ(shape({0, 0}), "2 ");
  EXPECT_EQ(shape({0, 1}), "2 ");
}

// The number of elements that ranks send to other hosts. `host`: for each rank, the first rank on its host.
std::size_t crossing(const Call& call, const std::vector<Rank>& host, const RanksByHost& shape,
                     const Config& config = {}) {
  const auto ranks = static_cast<Rank>(host.size());
  std::size_t elements = 0;
  for (Rank rank = 0; rank < ranks; ++rank) {
    Planner planner(rank, ranks, {lanes}, config, shape);
    const CallPlan& p = planner.plan(call, false, schedule::UnreadableBuffers{});
    for (const LaneMessages& l : p.compiled.lines)
      for (std::uint32_t k = 0; !l.receives && host[l.peer] != host[rank] && k < l.count; ++k)
        elements += p.compiled.steps[p.compiled.messages[l.first + k]].from.elements;
  }
  return elements;
}

TEST(Planner, RanksOfSeveralHostsSendLittleBetweenThem) {
  constexpr std::size_t count = 4096;
  std::vector<float> in(8 * count), out(8 * count);
  Call call{.input = in.data(), .output = out.data(), .count = count};
  for (const std::vector<Rank>& host : {std::vector<Rank>{0, 0, 2, 2}, {0, 1, 0, 1}, {0, 1, 1, 0}}) {
    EXPECT_EQ(crossing(call, host, shape_of(host)), 2 * count);  // each host sends its sum of a buffer once
    EXPECT_GT(crossing(call, host, {{4}}), 2 * count);
  }
  const std::vector<Rank> rows{0, 0, 0, 0, 4, 4, 4, 4}, mixed{0, 1, 1, 0, 1, 0, 0, 1};
  for (const Collective c : schedule::collectives()) {
    if (schedule::uneven(c) || c == Collective::permute || c == Collective::send_recv) continue;
    call.operation.collective = c;
    call.count = schedule::carries_data(c) ? count : 0;
    EXPECT_EQ(crossing(call, mixed, shape_of(mixed)), crossing(call, rows, shape_of(rows))) << schedule::name(c);
  }
}

// With ranks numbered host after host, a ring crosses between hosts only once for each host.
TEST(Planner, RanksOfHostsThatAreNotAlikeAreNumberedHostAfterHost) {
  constexpr std::size_t count = 1 << 20;
  std::vector<float> in(count), out(count);
  const Call call{.input = in.data(), .output = out.data(), .count = count};
  const std::vector<Rank> host{0, 1, 0, 1, 0}, rows{0, 0, 0, 3, 3};
  EXPECT_LT(crossing(call, host, shape_of(host)), crossing(call, host, {{5}}));
  EXPECT_EQ(crossing(call, host, shape_of(host)), crossing(call, rows, {{5}}));
}

TEST(Planner, AnotherNumberingIsAnotherPlan) {
  std::vector<float> in(64), out(64);
  const Call call{.input = in.data(), .output = out.data(), .count = 64};
  std::set<std::string> plans;
  for (const std::vector<Rank>& host : {std::vector<Rank>{0, 0, 2, 2}, {0, 1, 0, 1}, {0, 1, 1, 0}}) {
    Planner planner(0, 4, {lanes}, {}, shape_of(host));
    plans.insert(text_of(*planner.plan(call, false, schedule::UnreadableBuffers{}).config));
  }
  EXPECT_EQ(plans.size(), 3U);
}

TEST(Planner, APermuteWithoutPairsIsNoEarlierPermute) {
  Planner planner(0, 2, {lanes}, {});
  const Call some{.operation = {.collective = Collective::permute, .pairs = {{0, 1}, {1, 0}}}, .count = 4};
  const Call none{.operation = {.collective = Collective::permute}, .count = 4};
  EXPECT_FALSE(planner.plan(some, false, schedule::UnreadableBuffers{}).compiled.steps.empty());
  EXPECT_TRUE(planner.plan(none, false, schedule::UnreadableBuffers{}).compiled.steps.empty());
}

TEST(Planner, ASendToAnotherIsNoEarlierSend) {
  Planner planner(0, 3, {lanes}, {});
  const auto peer = [&](Rank to) {
    const Call call{.operation = {.collective = Collective::send_recv, .root = 0, .peer = to}, .count = 4};
    return planner.plan(call, false, schedule::UnreadableBuffers{}).compiled.lines.at(0).peer;
  };
  EXPECT_EQ(peer(1), 1);
  EXPECT_EQ(peer(2), 2);
}

TEST(CallCheck, FindsWhatAFreshOneFinds) {
  std::byte memory[8] = {};
  Asker asker(9);
  CallCheck one(1, 3);
  for (int i = 0; i < 3000; ++i) {
    Call call = asker.next(3).call;
    if (i % 5 == 0) call.operation.root = 7;
    call.input = i % 3 == 0 ? nullptr : memory;
    call.output = memory + 1;
    const auto found = [&](CallCheck& check) {
      try {
        return std::string(check(call) ? "in place" : "out of place");
      } catch (const std::invalid_argument& e) {
        return std::string(e.what());
      }
    };
    CallCheck fresh(1, 3);
    ASSERT_EQ(found(one), found(fresh)) << i << " " << schedule::name(call.operation.collective);
  }
}

}  // namespace
}  // namespace trellis::ccl
