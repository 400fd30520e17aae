// Sizes that follow from a CPU's caches, for CPUs that are not here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/dispatch/parallel.h"
#include "kernels/measure/relative_speed.h"

namespace trellis::kernels {
namespace {

struct Described {
  const char* name;
  std::size_t l1, l2, l3;
  Cpu cpu() const {
    Cpu c;
    c.l1_bytes = l1, c.l2_bytes = l2, c.l3_bytes = l3;
    return c;
  }
};

constexpr std::size_t kib = 1 << 10, mib = 1 << 20, gib = 1 << 30;
constexpr Described machines[] = {
    {"a server with a large last cache", 48 * kib, 2 * mib, 300 * mib},
    {"a board with a small last cache", 32 * kib, 256 * kib, mib},
    {"a server with a larger one", 48 * kib, 2 * mib, 600 * mib},
    {"stacked cache", 32 * kib, mib, 1152 * mib},
    {"no last cache reported", 32 * kib, mib, 0},
    {"a small board", 16 * kib, 256 * kib, 0},
    {"sizes that are no powers of two", 48 * kib + 17, 1280 * kib + 1, 33 * mib + 333},
    {"caches of a few lines", 64, 64, 64},
    {"an impossibly large cache", 32 * kib, mib, 64 * gib},
};

std::vector<TimedKernel> all_subjects() {
  std::vector<TimedKernel> all = speed_subjects();
  for (const TimedKernel& s : limit_loops()) all.push_back(s);
  return all;
}

std::size_t read_bytes(const TimedKernel& s, std::size_t i, std::size_t n) {
  return n * size_of(s.kernel->reads[std::min(i, s.kernel->reads.size() - 1)]);
}

TEST(MachinesOfOtherCaches, EveryOperandLiesInTheArenaAndOverlapsNoOther) {
  const std::vector<TimedKernel> subjects = all_subjects();
  for (const Described& m : machines) {
    const std::size_t arena = arena_bytes(subjects, m.cpu());
    for (const TimedKernel& s : subjects)
      for (const WorkingSetLevel regime : regimes) {
        const OperandLayout layout = layout_of(s, touched_bytes(regime, m.cpu()));
        std::vector<std::pair<std::size_t, std::size_t>> operands;
        for (std::size_t w = 0; w < layout.writes.size(); ++w)
          operands.emplace_back(layout.writes[w], layout.writes[w] + (s.kernel->sums ? parts_of(layout.n) : layout.n) *
                                                                         size_of(s.kernel->writes[w]));
        for (std::size_t r = 0; r < layout.reads.size(); ++r)
          operands.emplace_back(layout.reads[r], layout.reads[r] + read_bytes(s, r, layout.n));
        std::ranges::sort(operands);
        ASSERT_GT(layout.n, 0u);
        ASSERT_EQ(operands.size(), s.kernel->writes.size() + static_cast<std::size_t>(s.sources));
        for (std::size_t i = 0; i + 1 < operands.size(); ++i)
          EXPECT_LE(operands[i].second, operands[i + 1].first) << m.name << ": " << s.kernel->name;
        EXPECT_LE(operands.back().second, layout.end) << m.name << ": " << s.kernel->name;
        EXPECT_LE(layout.end, arena) << m.name << ": " << s.kernel->name << " from " << name(regime);
      }
  }
}

// A call whose data come from memory touches more bytes than the caches hold; one whose data are in a cache touches no
// more than that cache holds.
TEST(MachinesOfOtherCaches, ACallTouchesWhatItsRegimeSays) {
  for (const Described& m : machines) {
    EXPECT_LE(touched_bytes(WorkingSetLevel::l1, m.cpu()), m.l1) << m.name;
    EXPECT_LE(touched_bytes(WorkingSetLevel::l2, m.cpu()), m.l2) << m.name;
    EXPECT_GT(touched_bytes(WorkingSetLevel::memory, m.cpu()), 2 * std::max(m.l2, m.l3)) << m.name;
  }
}

TEST(MachinesOfOtherCaches, ATimingIsANumberWhereCachesAreTiny) {
  const Cpu tiny = Described{"", 64, 64, 64}.cpu();
  const std::vector<TimedKernel> subjects = speed_subjects();
  const TimingArena arena(subjects, tiny);
  for (const TimedKernel& s : subjects)
    if (s.kernel->sums || s.sources == 8)
      for (const WorkingSetLevel regime : regimes) {
        const RelativeSpeed speed = speed_of(arena, s, regime, 1, 1);
        EXPECT_TRUE(std::isfinite(speed.fraction_of_limit) && speed.bytes_per_s > 0) << s.kernel->name;
      }
}

TEST(MachinesOfOtherCaches, LittleMemoryIsRefusedBeforeItIsTouched) {
  const Cpu large = Described{"", 48 * kib, 2 * mib, 300 * mib}.cpu();
  try {
    const TimingArena arena(speed_subjects(), large, 512 * mib);
    FAIL() << "512 MiB hold " << arena.bytes().size() << " bytes";
  } catch (const std::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("last cache of 300 MiB"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("512 MiB of memory are available"), std::string::npos) << e.what();
  }
}

TEST(MachinesOfOtherCaches, ASubjectThatTheArenaWasNotMadeForIsRefused) {
  const Cpu small = Described{"", kib, 2 * kib, 4 * kib}.cpu();
  const TimingArena arena({}, small);
  const TimedKernel wide{&kernel_named("reduce.sum.f32.nearest"), 64};
  EXPECT_THROW(speed_of(arena, wide, WorkingSetLevel::memory, 1, 1), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::kernels
