// Random deaths and freezes while random operations run. Not part of the ordinary tests: tools/soak runs it many times.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <iostream>
#include <random>
#include <thread>

#include "ccl/group.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;

// The same plan on every rank.
struct Plan {
  explicit Plan(std::uint32_t seed) {
    std::mt19937 random(seed);
    ranks = 2 + static_cast<Rank>(random() % 4);
    victim = static_cast<Rank>(random() % static_cast<std::uint32_t>(ranks));
    after = std::chrono::microseconds(random() % 60'000);
    freeze = random() % 4 == 0;
    operations = static_cast<std::uint32_t>(random());
  }
  Rank ranks, victim;
  std::chrono::microseconds after;
  bool freeze;
  std::uint32_t operations;
};

void operate(Communicator& c, std::mt19937& random, std::vector<float>& in, std::vector<float>& out) {
  const std::size_t count = std::size_t{1} << random() % 18;
  const auto ranks = static_cast<std::size_t>(c.ranks());
  for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<float>(i % 64);
  switch (random() % 4) {
    case 0:
      c.all_reduce(in.data(), out.data(), count, DType::f32);
      for (std::size_t i = 0; i < count; ++i)
        if (out[i] != in[i] * static_cast<float>(ranks)) throw std::logic_error("a wrong sum");
      return;
    case 1:
      c.all_gather(in.data(), out.data(), count, DType::f32);
      for (std::size_t i = 0; i < count * ranks; ++i)
        if (out[i] != in[i % count]) throw std::logic_error("a wrong gathering");
      return;
    case 2:
      return c.broadcast(in.data(), in.data(), count, DType::f32, static_cast<Rank>(random() % ranks));
    default: {
      const auto next = static_cast<Rank>((static_cast<std::size_t>(c.rank()) + 1) % ranks);
      const auto before = static_cast<Rank>((static_cast<std::size_t>(c.rank()) + ranks - 1) % ranks);
      Group group;
      c.send(in.data(), count, DType::f32, next);
      c.recv(out.data(), count, DType::f32, before);
      group.end();
    }
  }
}

void live(Communicator& c, const Plan& plan) {
  std::mt19937 random(plan.operations);
  std::vector<float> in(std::size_t{1} << 18), out((std::size_t{1} << 18) * 6);
  if (c.rank() == plan.victim) {
    std::thread([&plan] {
      std::this_thread::sleep_for(plan.after);
      kill(getpid(), plan.freeze ? SIGSTOP : SIGKILL);
    }).detach();
  }
  try {
    for (;;) operate(c, random, in, out);
  } catch (const PeerLost& lost) {
    if (lost.rank != plan.victim) throw;
  }
  const auto left = c.shrink(std::array{plan.victim});
  random.seed(plan.operations);  // alike on all ranks, which may have run more or fewer operations
  for (int i = 0; i < 3; ++i) operate(*left, random, in, out);
  left->barrier();
}

// On a busy machine a rank may come to the others' shrink only after a short timeout. Then the same plan runs again,
// with a timeout that no load reaches.
TEST(Soak, DISABLED_RandomDeaths) {
  const std::uint32_t seed = std::random_device()();
  const Plan plan(seed);
  const std::string dies = fmt::format("rank {}: signal 9", plan.victim);
  std::string said;
  for (const std::chrono::seconds timeout : {1s, long_deadline}) {
    said = run_processes(plan.ranks, [&](Communicator& c) { live(c, plan); }, {.timeout = timeout});
    if (!each_line_has_one_of(said, {dies, "shrink: "}) || said == dies + "\n") break;
    std::cout << "[   AGAIN  ] " << said << "seed " << seed << std::endl;
  }
  EXPECT_EQ(said, dies + "\n") << "seed " << seed << ": rank " << plan.victim << " of " << plan.ranks
                               << (plan.freeze ? " froze" : " died") << " after " << plan.after.count() << " us";
}

}  // namespace
}  // namespace trellis::ccl
