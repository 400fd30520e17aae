// Collectives on simulated devices have the right bits and the simulator's time, in one run.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "ccl/failure/rank_dump.h"
#include "ccl/group.h"
#include "device/capabilities.h"
#include "device/host/host_device.h"
#include "sim/cluster/choose/algorithm_choice.h"
#include "sim/cluster/choose/pricer.h"
#include "tests/ccl/ranks/cases.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

constexpr const char* machine_name = "trn2.48xlarge";

// Runs each rank on its own core. Returns what went wrong; empty: nothing.
std::string on_cores(Rank ranks, const DeviceFunction& work, const std::string& algorithm = "") {
  const auto closing = [&](Communicator& c, device::Device& d) {
    work(c, d);
    c.finalize();
  };
  return run_devices(fmt::format("sim:{}", machine_name), ranks, closing, algorithm);
}

sim::Time priced(Collective collective, const std::string& config, Rank ranks, double bytes) {
  const sim::Machine machine = sim::machine_named(machine_name);
  sim::Pricer pricer(machine, sim::first_in_a_row(machine, ranks),
                     {.operation = {.collective = collective, .peer = sim::last_rank, .in_place = true}, .element = 4});
  return pricer.price(sim::algorithm_config_named(config), bytes).time;
}

// One rank is late: all ranks end when the collective's time has passed since it came.
TEST(Simulated, ACollectiveTakesTheSimulatorsTime) {
  constexpr std::size_t count = 100'000, bytes = count * sizeof(float);
  for (const Rank ranks : {2, 4, 8}) {
    std::vector<device::Time> begins(static_cast<std::size_t>(ranks)), ends = begins, again = begins;
    std::string config;
    EXPECT_EQ(on_cores(ranks,
                       [&](Communicator& c, device::Device& d) {
                         const auto rank = static_cast<std::size_t>(c.rank());
                         auto* const data = static_cast<float*>(d.allocate(bytes));
                         std::fill_n(data, count, static_cast<float>(rank + 1));
                         const auto stream = d.stream();
                         if (rank == 1) d.copy(*stream, data, data + count / 2, bytes / 2);
                         stream->synchronize();
                         begins[rank] = stream->now();
                         const Call call{.operation = {.collective = Collective::all_reduce},
                                         .input = data,
                                         .output = data,
                                         .count = count};
                         if (rank == 0) config = c.algorithm(call);
                         c.run(call, stream.get());
                         stream->synchronize();
                         ends[rank] = stream->now();
                         const auto expected = static_cast<float>(c.ranks() * (c.ranks() + 1) / 2);
                         if (std::count(data, data + count, expected) != count) throw std::runtime_error("a wrong sum");
                         c.run(call);  // in the calling thread
                         again[rank] = clock_of(d).time;
                         d.release(data);
                       }),
              "");
    const sim::Time time = priced(Collective::all_reduce, config, ranks, bytes);
    EXPECT_GT(begins[1], begins[0]);
    for (std::size_t r = 0; r < ends.size(); ++r) {
      EXPECT_EQ(ends[r], begins[1] + time) << config << " by " << ranks << ", rank " << r;
      EXPECT_EQ(again[r], ends[r] + time) << config << " by " << ranks << ", rank " << r;
    }
  }
}

TEST(Simulated, EveryAlgorithmGivesTheTruthsBits) {
  constexpr std::size_t counts[] = {37};
  const Kind kind = [](Call& c, std::size_t turn) {
    c.type = turn % 2 == 0 ? kernels::DType::f32 : kernels::DType::bf16;
  };
  const std::vector<Case> cases = cases_for(4, counts, kind);
  std::set<std::string> algorithms;
  for (const Case& c : cases) algorithms.insert(c.algorithm);
  EXPECT_GT(algorithms.size(), 5u);
  for (const std::string& algorithm : algorithms)
    EXPECT_EQ(on_cores(
                  4,
                  [&](Communicator& c, device::Device&) {
                    for (std::size_t i = 0; i < cases.size(); ++i)
                      if (cases[i].algorithm == algorithm) run_case(c, cases[i], i);
                  },
                  algorithm),
              "");
}

TEST(Simulated, OperationsOfAGroupTakeTheirTimeOneAfterTheOther) {
  constexpr std::size_t count = 1000;
  std::vector<device::Time> ends(4);
  EXPECT_EQ(on_cores(4,
                     [&](Communicator& c, device::Device& d) {
                       auto* const data = static_cast<float*>(d.allocate(2 * count * sizeof(float)));
                       const auto stream = d.stream();
                       Group group;
                       for (int i = 0; i < 2; ++i)
                         c.all_reduce(data + i * count, data + i * count, count, kernels::DType::f32, {}, stream.get());
                       group.end();
                       stream->synchronize();
                       ends[static_cast<std::size_t>(c.rank())] = stream->now();
                       const device::Time begin = stream->now();
                       c.all_reduce(data, data, count, kernels::DType::f32, {}, stream.get());
                       stream->synchronize();
                       if (ends[static_cast<std::size_t>(c.rank())] != 2 * (stream->now() - begin))
                         throw std::runtime_error("two operations do not take twice the time of one");
                       d.release(data);
                     }),
            "");
  EXPECT_EQ(ends[0], ends[3]);
}

sim::Time message_time(double bytes) {
  const sim::Machine machine = sim::machine_named(machine_name);
  sim::Pricer pricer(machine, sim::first_in_a_row(machine, 2),
                     {.operation = {.collective = Collective::send_recv, .root = 0, .peer = 1}, .element = 4});
  return sim::choose(pricer, sim::usual_configs(pricer, bytes), bytes, {.within = sim::usual_within}).best.front().time;
}

// The receiver comes early in one case and late in the other.
TEST(Simulated, AMessageArrivesAfterItWasSent) {
  constexpr std::size_t count = 100'000, bytes = count * sizeof(float);
  for (const int late : {0, 1}) {
    std::vector<device::Time> begins(2), ends(2);
    EXPECT_EQ(on_cores(2,
                       [&](Communicator& c, device::Device& d) {
                         const auto rank = static_cast<std::size_t>(c.rank());
                         auto* const data = static_cast<float*>(d.allocate(bytes));
                         if (c.rank() == late) d.fill(data, std::byte{0}, bytes);
                         if (c.rank() == 0) std::fill_n(data, count, 3.0F);
                         begins[rank] = clock_of(d).time;
                         if (c.rank() == 0) c.send(data, count, kernels::DType::f32, 1);
                         if (c.rank() == 1) c.recv(data, count, kernels::DType::f32, 0);
                         ends[rank] = clock_of(d).time;
                         if (data[count - 1] != 3.0F) throw std::runtime_error("another message");
                         d.release(data);
                       }),
              "");
    EXPECT_GT(begins[static_cast<std::size_t>(late)], 0);
    EXPECT_EQ(ends[1], std::max(begins[0], begins[1]) + message_time(bytes));
    EXPECT_EQ(ends[0], begins[0] + message_time(bytes)) << "the sender does not wait for the receiver's clock";
  }
}

TEST(Simulated, MessagesOfAGroupMoveAtOnce) {
  constexpr std::size_t count = 10'000;
  std::vector<device::Time> ends(2);
  EXPECT_EQ(on_cores(2,
                     [&](Communicator& c, device::Device& d) {
                       std::vector<float> in(3 * count, static_cast<float>(c.rank())), out(3 * count);
                       const Rank other = 1 - c.rank();
                       for (int round = 0; round < 2; ++round) {
                         Group group;
                         for (std::size_t i = 0; i < 2; ++i) {
                           c.send(in.data() + i * count, (i + 1) * count, kernels::DType::f32, other);
                           c.recv(out.data() + i * count, (i + 1) * count, kernels::DType::f32, other);
                         }
                         group.end();
                       }
                       if (out[3 * count - 1] != static_cast<float>(other)) throw std::runtime_error("another message");
                       ends[static_cast<std::size_t>(c.rank())] = clock_of(d).time;
                     }),
            "");
  EXPECT_EQ(ends[0], 2 * message_time(2 * count * sizeof(float)));
  EXPECT_EQ(ends[1], ends[0]);
}

// Blocks of unlike sizes take the time of their own sizes.
TEST(Simulated, UnevenBlocksAreTimedByTheirCounts) {
  constexpr Rank ranks = 4;
  const sim::Machine machine = sim::machine_named(machine_name);
  const std::vector<std::size_t> rows[] = {{0, 9000, 1, 0}, {0, 0, 0, 70}, {5, 0, 0, 0}, {0, 0, 3000, 0}};
  for (const Collective collective :
       {Collective::all_gather_v, Collective::reduce_scatter_v, Collective::all_to_all_v}) {
    std::vector<device::Time> ends(ranks);
    std::string config;
    EXPECT_EQ(on_cores(ranks,
                       [&](Communicator& c, device::Device& d) {
                         std::vector<float> in(20'000, 1.0F), out(20'000);
                         const auto me = static_cast<std::size_t>(c.rank());
                         Call call{.operation = {.collective = collective},
                                   .input = in.data(),
                                   .output = out.data(),
                                   .counts = rows[0]};
                         if (collective == Collective::all_to_all_v) {
                           call.counts = rows[me];
                           for (const auto& row : rows) call.arriving_counts.push_back(row[me]);
                         }
                         if (me == 0) config = c.algorithm(call);
                         c.run(call);
                         ends[me] = clock_of(d).time;
                       }),
              "");
    std::vector<std::int64_t> blocks;
    for (const auto& row : rows)
      if (blocks.empty() || collective == Collective::all_to_all_v) blocks.insert(blocks.end(), row.begin(), row.end());
    const auto elements = std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
    sim::Pricer pricer(machine, sim::first_in_a_row(machine, ranks),
                       {.operation = {.collective = collective, .peer = sim::last_rank}, .element = 4});
    const sim::AlgorithmConfig named = sim::algorithm_config_named(config);
    const sim::CompiledSchedule pattern(
        schedule::make(schedule::algorithm_named(named.algorithm), pricer.request(named)), std::move(blocks));
    const sim::Time time = sim::price(pattern, machine, pricer.options(4.0 * static_cast<double>(elements))).time;
    EXPECT_GT(time, 0);
    for (const device::Time end : ends) EXPECT_EQ(end, time) << schedule::name(collective) << " by " << config;
  }
}

// Ranks exchange their clocks before each operation. A rank that is held up anywhere in an operation and one that is
// already in the next exchange still make the same calls.
constexpr std::size_t n = 1000;

// Longer than a rank waits before it checks which calls the others are in.
constexpr auto held_up = 700ms;

enum class Point { between, within };  // between the exchange of clocks and the operation; in the operation

void wait_at(Point here, std::optional<Point> where) {
  if (where == here) std::this_thread::sleep_for(held_up);
}

class SlowTime : public device::SimulatedTime {
 public:
  explicit SlowTime(std::optional<Point> point) : point_(point) {}
  device::RankClock now() const override { return {}; }
  void spend(const device::CollectiveSpec&) override { wait_at(Point::between, point_); }
  void hold() override {}
  void release() override {}

 private:
  const std::optional<Point> point_;
};

// A host device with simulated time, which holds up its rank at a point of every operation.
class Slow : public device::HostDevice {
 public:
  explicit Slow(std::optional<Point> point) : HostDevice("slow", std::size_t{1} << 20), point_(point), time_(point) {}
  device::Capabilities capabilities() const override {
    device::Capabilities c = HostDevice::capabilities();
    c.add(device::Capability::simulated_time);
    return c;
  }
  device::SimulatedTime* simulated_time() override { return &time_; }
  void reduce(kernels::Reduction op, kernels::DType type, std::span<const void* const> sources, void* dst,
              std::size_t count, const kernels::ReduceOptions& how) override {
    wait_at(Point::within, point_);
    HostDevice::reduce(op, type, sources, dst, count, how);
  }

 private:
  const std::optional<Point> point_;
  SlowTime time_;
};

// The last of the ranks is held up.
std::string with_a_slow_rank(Rank ranks, std::optional<Point> point, const DeviceFunction& work) {
  const auto device = [&](Rank r) { return std::make_shared<Slow>(r == ranks - 1 ? point : std::optional<Point>()); };
  return run_devices(device, ranks, work);
}

void sum(Communicator& c, device::Device&) {
  std::vector<float> in(n, static_cast<float>(c.rank() + 1)), out(n);
  for (int i = 0; i < 2; ++i) {
    c.all_reduce(in.data(), out.data(), n, kernels::DType::f32);
    if (out != std::vector<float>(n, static_cast<float>(c.ranks() * (c.ranks() + 1) / 2)))
      throw std::runtime_error("a wrong sum");
  }
  c.barrier();
}

TEST(Exchange, ARankInTheNextOnesExchangeWaitsForASlowOne) {
  for (const Rank ranks : {2, 3})
    for (const Point point : {Point::between, Point::within})
      EXPECT_EQ(with_a_slow_rank(ranks, point,
                                 [](Communicator& c, device::Device& d) {
                                   sum(c, d);
                                   c.finalize();
                                 }),
                "")
          << ranks << " ranks, point " << static_cast<int>(point);
}

// With two entries, `trellis doctor` would find two different calls under one number.
TEST(Exchange, AnOperationAndItsExchangeAreOneEntryOfTheDump) {
  EXPECT_EQ(with_a_slow_rank(2, std::nullopt,
                             [](Communicator& c, device::Device& d) {
                               sum(c, d);
                               const RankDump dump = rank_dump_in(c.dump());
                               std::map<std::uint64_t, std::string> calls;
                               for (const DumpedEntry& e : dump.entries) {
                                 if (e.under_way) throw std::runtime_error("an operation that has not ended");
                                 calls[e.operation] += e.call;
                               }
                               const std::string call = "all_reduce of 1000 f32, sum";
                               if (calls != std::map<std::uint64_t, std::string>{{1, call}, {2, call}, {3, "barrier"}})
                                 throw std::runtime_error(c.dump());
                             }),
            "");
}

// The errors of two ranks whose calls differ.
std::string of_different(const std::function<void(Communicator&, float*)>& first,
                         const std::function<void(Communicator&, float*)>& second) {
  return with_a_slow_rank(2, std::nullopt, [&](Communicator& c, device::Device& d) {
    sum(c, d);
    std::vector<float> data(2 * n);
    (c.rank() == 0 ? first : second)(c, data.data());
  });
}

TEST(Exchange, CallsThatDifferAreNamedAsTheProgramMadeThem) {
  const auto sums = [](Communicator& c, float* data) { c.all_reduce(data, data, n, kernels::DType::f32); };
  const auto gathers = [](Communicator& c, float* data) { c.all_gather(data, data + n, n / 2, kernels::DType::f32); };
  const auto divides = [](Communicator& c, float*) { c.split(0, 0); };
  const std::string calls = of_different(sums, gathers);
  EXPECT_NE(calls.find("rank 1 called operation 4, all_gather of 500 f32 where rank 0 called operation 4, all_reduce "
                       "of 1000 f32, sum"),
            std::string::npos)
      << calls;
  const std::string division = of_different(sums, divides);
  EXPECT_NE(division.find("rank 1 called a split after operation 3 where rank 0 called operation 4, all_reduce"),
            std::string::npos)
      << division;
}

}  // namespace
}  // namespace trellis::ccl
