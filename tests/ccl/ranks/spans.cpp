// The collectives over spans do what the general calls do, and refuse spans that do not belong together.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/ccl/ranks/run.h"
#include "tests/why.h"

namespace trellis::ccl {
namespace {

constexpr Rank ranks = 3;

std::vector<int> filled(std::size_t count, int first) {
  std::vector<int> data(count);
  std::iota(data.begin(), data.end(), first);
  return data;
}

// Throws if the values differ: a rank in another thread than the test's can't use its assertions.
void expect(const char* what, const std::vector<int>& got, const std::vector<int>& wanted) {
  if (got != wanted) throw std::runtime_error(std::string(what) + " is wrong: " + testing::PrintToString(got));
}

TEST(Spans, EveryCollectiveTakesThem) {
  const auto live = [](Communicator& c) {
    const int me = c.rank();
    std::vector<int> sum = filled(2, me);  // me, me + 1
    c.all_reduce(std::span(sum));
    expect("all_reduce", sum, {3, 6});
    const std::vector<int> mine = filled(2, 10 * me);
    std::vector<int> out(2), all(6), one(1);
    c.all_reduce(std::span(mine), std::span(out), {kernels::Reduction::max});
    expect("all_reduce of two buffers", out, {20, 21});
    c.all_gather(std::span(mine), std::span(all));
    expect("all_gather", all, {0, 1, 10, 11, 20, 21});
    const std::vector<int> three = filled(3, 10 * me);
    c.reduce_scatter(std::span(three), std::span(one));
    expect("reduce_scatter", one, {30 + 3 * me});
    std::vector<int> exchanged(3);
    c.all_to_all(std::span(three), std::span(exchanged));
    expect("all_to_all", exchanged, {me, 10 + me, 20 + me});
    std::vector<int> data = filled(2, 10 * me);
    c.broadcast(std::span(data), 1);
    expect("broadcast", data, {10, 11});
    std::vector<int> roots(me == 2 ? 2 : 0), gathered(me == 0 ? 6 : 0), scattered(2);
    c.reduce(std::span(mine), std::span(roots), 2);
    if (me == 2) expect("reduce", roots, {30, 33});
    c.gather(std::span(mine), std::span(gathered), 0);
    if (me == 0) expect("gather", gathered, {0, 1, 10, 11, 20, 21});
    c.scatter(std::span(gathered), std::span(scattered), 0);
    expect("scatter", scattered, mine);
    if (me == 0) c.send(std::span(mine), 1);
    if (me == 1) c.recv(std::span(out), 0), expect("send", out, {0, 1});
    out = {-1, -1};
    c.permute(std::span(mine), std::span(out), {{0, 1}, {1, 0}});
    expect("permute", out, me == 0 ? std::vector{10, 11} : me == 1 ? std::vector{0, 1} : std::vector{-1, -1});

    const std::vector<std::size_t> counts = {1, 2, 0};
    const std::vector<int> own = filled(counts[static_cast<std::size_t>(me)], 10 * me);
    std::vector<int> uneven(3), part(own.size());
    c.all_gather_v(std::span(own), std::span(uneven), counts);
    expect("all_gather_v", uneven, {0, 10, 11});
    c.reduce_scatter_v(std::span(three), std::span(part), counts);
    expect("reduce_scatter_v", part, me == 0 ? std::vector{30} : me == 1 ? std::vector{33, 36} : std::vector<int>());
    const std::vector<std::size_t> arriving(3, counts[static_cast<std::size_t>(me)]);
    std::vector<int> arrived(3 * own.size());
    c.all_to_all_v(std::span(three), counts, std::span(arrived), arriving);
    expect("all_to_all_v", arrived,
           me == 0   ? std::vector{0, 10, 20}
           : me == 1 ? std::vector{1, 2, 11, 12, 21, 22}
                     : std::vector<int>());
  };
  EXPECT_EQ(run_threads(ranks, live), "");
}

TEST(Spans, WhatDoesNotFitIsRefused) {
  const auto live = [](Communicator& c) {
    std::vector<float> two(2), three(3), five(5), six(6);
    const std::vector<std::size_t> counts = {1, 2, 0}, few = {1};
    const std::pair<std::string, std::string> cases[] = {
        {why([&] { c.all_reduce(std::span(two), std::span(five)); }), "2 elements in the input and 5"},
        {why([&] { c.all_gather(std::span(two), std::span(five)); }), "5 elements in the output; expected 2 for each"},
        {why([&] { c.reduce_scatter(std::span(five), std::span(two)); }), "5 elements in the input"},
        {why([&] { c.all_to_all(std::span(five), std::span(five)); }), "5 elements in the output; expected 1 for each"},
        {why([&] { c.all_gather_v(std::span(two), std::span(six), counts); }),
         "6 elements in the larger buffer; expected the 3"},
        {why([&] { c.all_gather_v(std::span(five), std::span(three), counts); }), "5 elements in the smaller buffer"},
        {why([&] { c.all_gather_v(std::span(two), std::span(six), few); }), "1 counts; expected one for each of 3"}};
    for (const auto& [said, wanted] : cases)
      if (said.find(wanted) == said.npos) throw std::runtime_error(said + ", and not: " + wanted);
  };
  EXPECT_EQ(run_threads(ranks, live), "");
}

}  // namespace
}  // namespace trellis::ccl
