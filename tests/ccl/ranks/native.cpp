// The device's own collectives, on NeuronCores that the stand-in for libnrt simulates: their sums' bits, and how the
// dump shows them.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "ccl/group.h"
#include "device/host/host_device.h"
#include "device/native_collective.h"
#include "kernels/reduce/reduce.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

constexpr std::size_t n = 1000;

// Rank r's numbers, of all magnitudes, so that the order of additions shows in a sum.
std::vector<float> numbers(Rank r, std::size_t count) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = std::ldexp(static_cast<float>((i * 7919 + static_cast<std::size_t>(r) * 104'729) % 1000 + 1),
                        static_cast<int>((i + static_cast<std::size_t>(r) * 5) % 23) - 11);
  return out;
}

std::vector<float> sum_of(Rank ranks, std::size_t count) {
  std::vector<std::vector<float>> all;
  std::vector<const void*> sources;
  for (Rank r = 0; r < ranks; ++r) all.push_back(numbers(r, count));
  for (const auto& one : all) sources.push_back(one.data());
  std::vector<float> out(count);
  kernels::reduce(kernels::Reduction::sum, kernels::DType::f32, sources, out.data(), count, {});
  return out;
}

// A rank with buffers on its core: put() writes the input, get() reads the output.
struct OnCore {
  Communicator& c;
  device::Device& d;
  float* in;
  float* out;
  void put(const std::vector<float>& values) const { d.copy(in, values.data(), values.size() * sizeof(float)); }
  std::vector<float> get(std::size_t count) const {
    std::vector<float> values(count);
    d.copy(values.data(), out, count * sizeof(float));
    return values;
  }
  void expect(bool right, const std::string& what) const {
    if (!right) throw std::runtime_error(what + ": " + c.dump());
  }
  // Checks what the dump says of the last operation.
  void expect_told(std::string_view what) const {
    const std::string dump = c.dump();
    expect(dump.rfind(what) != std::string::npos, fmt::format("the dump does not say {}", what));
  }
};

std::string on_cores(Rank ranks, const std::function<void(const OnCore&)>& work, const std::string& algorithm = "") {
  setenv("TRELLIS_LIBNRT", TRELLIS_STANDIN, 1);       // NOLINT(concurrency-mt-unsafe): before any other thread
  setenv("TRELLIS_NRT_MACHINE", "trn2.48xlarge", 1);  // NOLINT(concurrency-mt-unsafe)
  setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);          // NOLINT(concurrency-mt-unsafe)
  return run_devices(
      "neuron", ranks,
      [&](Communicator& c, device::Device& d) {
        auto* const in = static_cast<float*>(d.allocate(4 * n * sizeof(float), "in"));
        auto* const out = static_cast<float*>(d.allocate(4 * n * sizeof(float), "out"));
        work({c, d, in, out});
        c.finalize();
        d.release(in);
        d.release(out);
      },
      algorithm);
}

TEST(Native, WhatTheDeviceCoversItDoes) {
  EXPECT_EQ(
      on_cores(4,
               [](const OnCore& r) {
                 const auto me = static_cast<std::size_t>(r.c.rank());
                 const auto sum = sum_of(4, n);
                 r.put(numbers(r.c.rank(), n));
                 r.c.all_reduce(r.in, r.out, n, kernels::DType::f32);
                 r.expect(r.get(n) == sum, "a wrong sum");
                 r.expect_told("\"algorithm\": \"native\"");
                 r.c.all_reduce(r.in, r.out, n, kernels::DType::f32, {.kind = kernels::Reduction::avg});
                 r.expect(r.get(n)[17] == sum[17] / 4, "a wrong average");
                 r.c.reduce_scatter(r.in, r.out, n / 4, kernels::DType::f32);
                 r.expect(
                     r.get(n / 4) == std::vector<float>(sum.begin() + static_cast<std::ptrdiff_t>(me * n / 4),
                                                        sum.begin() + static_cast<std::ptrdiff_t>((me + 1) * n / 4)),
                     "a wrong part of a sum");
                 const auto stream = r.d.stream();
                 r.c.all_gather(r.in, r.out, n, kernels::DType::f32, stream.get());
                 r.c.all_reduce(r.in, r.in, n, kernels::DType::f32, {.kind = kernels::Reduction::max}, stream.get());
                 stream->synchronize();
                 const auto gathered = r.get(4 * n);
                 for (Rank from = 0; from < 4; ++from)
                   r.expect(std::equal(gathered.begin() + from * static_cast<std::ptrdiff_t>(n),
                                       gathered.begin() + (from + 1) * static_cast<std::ptrdiff_t>(n),
                                       numbers(from, n).begin()),
                            "another rank's numbers");
                 r.expect(r.c.dump().find("not_native") == std::string::npos, "a reason against what was done");
               }),
      "");
}

TEST(Native, WhatItDoesNotCoverOurSchedulesDo) {
  EXPECT_EQ(on_cores(3,
                     [](const OnCore& r) {
                       r.put(numbers(r.c.rank(), n));
                       r.c.broadcast(r.in, r.out, n, kernels::DType::f32, 1);
                       r.expect(r.get(n) == numbers(1, n), "a wrong broadcast");
                       r.expect_told("native collectives have no broadcast");
                       r.c.all_reduce(r.in, r.out, n, kernels::DType::f32, {.kind = kernels::Reduction::prod});
                       r.expect_told("native collectives do not know prod");
                       // Rank 2's input is in the host's memory, which native collectives refuse. Only rank 2 knows
                       // that, so it tells the others, and all use a schedule.
                       std::vector<float> host = numbers(r.c.rank(), n);
                       r.c.all_reduce(r.c.rank() == 2 ? host.data() : r.in, r.out, n, kernels::DType::f32);
                       const auto expected = sum_of(3, n), seen = r.get(n);
                       for (std::size_t i = 0; i < n; ++i)
                         r.expect(std::abs(seen[i] - expected[i]) <= 1e-5F * std::abs(expected[i]),
                                  "a wrong sum by a schedule");
                       r.expect_told(r.c.rank() == 2 ? "native collectives need input and output in the device's memory"
                                                     : "rank 2 refuses it");
                     }),
            "");
  EXPECT_EQ(on_cores(
                2,
                [](const OnCore& r) {
                  r.c.all_reduce(r.in, r.out, n, kernels::DType::f32);
                  r.expect_told("the algorithm is set: ring");
                  r.expect_told("\"algorithm\": \"ring");
                },
                "ring"),
            "");
}

// A rank's communicator of every second rank, and sums over that one and over all ranks.
struct Parted {
  explicit Parted(const OnCore& of) : r(of), part(of.c.split(of.c.rank() % 2, -of.c.rank())) {
    r.put(numbers(r.c.rank(), 2 * n));
  }
  void sum_part() const { part->all_reduce(r.in, r.out, n, kernels::DType::f32); }
  void sum_whole() const { r.c.all_reduce(r.in + n, r.out + n, n, kernels::DType::f32); }
  void sum_both_in_groups(bool part_first) const {
    for (int i = 0; i < 20; ++i) {
      Group group;
      if (part_first) sum_part();
      sum_whole();
      if (!part_first) sum_part();
      group.end();
      expect_sum_of_part();
    }
  }
  void expect_sum_of_part() const {
    const auto a = numbers(r.c.rank() % 2, n), b = numbers(r.c.rank() % 2 + 2, n), seen = r.get(n);
    for (std::size_t i = 0; i < n; ++i) r.expect(seen[i] == a[i] + b[i], "a wrong sum of a part");
  }
  void expect_told_of_part(std::string_view what) const {
    r.expect(part->dump().rfind(what) != std::string::npos, "a part's dump: " + part->dump());
  }
  const OnCore& r;
  std::unique_ptr<Communicator> part;
};

TEST(Native, PartsKeepTheirNumbersInTheWhole) {
  EXPECT_EQ(on_cores(4,
                     [](const OnCore& r) {
                       const Parted p(r);
                       p.sum_part();
                       p.sum_whole();
                       p.expect_sum_of_part();
                       p.expect_told_of_part("\"algorithm\": \"native\"");
                       r.expect_told("\"algorithm\": \"native\"");
                     }),
            "");
}

// A core's collectives run in the order in which they begin, so the first communicator of a group gets the device.
TEST(Native, OneCommunicatorOfAGroupHasItsTurn) {
  EXPECT_EQ(on_cores(4,
                     [](const OnCore& r) {
                       const Parted p(r);
                       p.sum_both_in_groups(true);
                       p.expect_told_of_part("\"algorithm\": \"native\"");
                       r.expect_told("another communicator's collective runs on the device");
                     }),
            "");
}

TEST(Native, GroupsInWhichRanksBeginInDifferentOrdersEnd) {
  EXPECT_EQ(on_cores(4, [](const OnCore& r) { Parted(r).sum_both_in_groups(r.c.rank() < 2); }), "");
}

// What the ranks' devices share. Their native all_reduce computes nothing. It ends once all ranks have begun it, but on
// rank `late` only a while after all others have closed their devices.
struct Ends {
  static constexpr int late = 2;
  const int ranks;
  std::atomic<int> begun{0}, closed{0};
  std::atomic<bool> for_late{false};
};

class EndsWhenTold : public device::HostDevice, device::NativeCollectives {
 public:
  EndsWhenTold(Ends& ends, Rank rank) : ends_(ends), rank_(rank) {}
  ~EndsWhenTold() override { ++ends_.closed; }
  EndsWhenTold(const EndsWhenTold&) = delete;
  EndsWhenTold& operator=(const EndsWhenTold&) = delete;
  device::NativeCollectives* collectives() override { return this; }
  device::NativeWorld join(const device::NativeWorld& proposed) override { return proposed; }
  std::string refuses(const device::NativeCollective&) const override { return ""; }
  device::NativeTurn take_turn() override { return std::make_shared<char>(); }
  std::unique_ptr<device::NativeCollectiveRun> start(const device::NativeCollective&, device::NativeTurn) override {
    ++ends_.begun;
    return std::make_unique<Run>(ends_, rank_);
  }

 private:
  class Run : public device::NativeCollectiveRun {
   public:
    Run(Ends& ends, Rank rank) : ends_(ends), rank_(rank) {}
    bool done() override { return rank_ == Ends::late ? ends_.for_late.load() : ends_.begun == ends_.ranks; }

   private:
    Ends& ends_;
    const Rank rank_;
  };
  Ends& ends_;
  const Rank rank_;
};

// A device may end a collective on one rank long after it ended on another rank, which may have left by then.
TEST(Native, WhoLeavesAfterItIsNotLostToOneWhoseDeviceIsSlow) {
  Ends ends{.ranks = 4};
  const std::jthread clock([&] {
    while (ends.closed < ends.ranks - 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::seconds(1));
    ends.for_late = true;
  });
  const auto open = [&](Rank r) { return std::make_shared<EndsWhenTold>(ends, r); };
  EXPECT_EQ(run_devices(open, ends.ranks,
                        [](Communicator& c, device::Device&) {
                          std::vector<float> in(n), out(n);
                          c.all_reduce(in.data(), out.data(), n, kernels::DType::f32);
                          if (c.dump().find("\"algorithm\": \"native\"") == std::string::npos)
                            throw std::runtime_error("it was not native: " + c.dump());
                        }),
            "");
}

}  // namespace
}  // namespace trellis::ccl
