// The map of each Trainium instance's interfaces, and the interfaces that a process uses first.
#if __has_include(<rdma/fabric.h>)

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <set>

#include "ccl/transports/libfabric/wire/nic_affinity.h"

namespace trellis::ccl::libfabric {
namespace {

// The interfaces of an instance as libfabric shows them, in the order of their buses.
std::vector<FabricNic> nics_of(const InstanceType& instance) {
  std::set<std::string> buses;
  for (const InstanceType::Nic& n : instance.nics)
    if (n.bus.ends_with('*')) {
      for (const char* slot : {"19.0", "1a.0"}) buses.insert(n.bus.substr(0, n.bus.size() - 1) + slot);
    } else {
      buses.insert(n.bus);
    }
  std::vector<FabricNic> all;
  for (const std::string& b : buses) all.push_back({fmt::format("rdma{}", all.size()), b});
  return all;
}

std::vector<std::string> buses_for(const std::string& type, const std::vector<int>& chips) {
  const InstanceType& instance = *instance_of("", type);
  const std::vector<FabricNic> nics = nics_of(instance);
  std::vector<std::size_t> order(nics.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::string> buses;
  for (const std::size_t i : by_chips(nics, instance, chips, order)) buses.push_back(nics[i].bus);
  return buses;
}

// Sets NEURON_RT_VISIBLE_CORES for as long as it lives. No other thread runs.
class Visible {
 public:
  explicit Visible(const char* cores) { setenv(name, cores, 1); }  // NOLINT(concurrency-mt-unsafe)
  ~Visible() { unsetenv(name); }                                   // NOLINT(concurrency-mt-unsafe)
  Visible(const Visible&) = delete;
  Visible& operator=(const Visible&) = delete;

 private:
  static constexpr const char* name = "NEURON_RT_VISIBLE_CORES";
};

TEST(Instances, EveryChipHasAnInterface) {
  for (const InstanceType& i : instances()) {
    EXPECT_EQ(i.chips, 16) << i.names.front();
    EXPECT_GE(i.cores_of_chip, i.usual_logical);
    const std::vector<FabricNic> nics = nics_of(i);
    EXPECT_EQ(nics.size(), i.cores_of_chip == 2 ? 8U : 16U);
    for (int chip = 0; chip < i.chips; ++chip) {
      int own = 0, near = 0;
      for (const FabricNic& n : nics) {
        own += i.distance(n.bus, chip) == 0 ? 1 : 0;
        near += i.distance(n.bus, chip) == 1 ? 1 : 0;
      }
      EXPECT_EQ(own, i.cores_of_chip == 2 ? 2 : 1) << i.names.front() << " chip " << chip;
      EXPECT_EQ(near, i.cores_of_chip == 2 ? 0 : 1);
    }
  }
}

TEST(Instances, AreKnownByTheirTypes) {
  EXPECT_EQ(instance_of("", "m5.large"), nullptr);
  EXPECT_EQ(instance_of("none", "trn2.48xlarge"), nullptr);
  EXPECT_EQ(instance_of("", "trn2u.48xlarge"), instance_of("", "trn2.48xlarge"));
  EXPECT_NE(instance_of("", "trn1n.32xlarge"), nullptr);
  EXPECT_EQ(instance_of("", "trn3pd.98xlarge")->names.front(), "trn3pd.*");
  EXPECT_EQ(instance_of("", "trn3pds98.3xlarge")->names.front(), "trn3*");
  EXPECT_EQ(instance_of("trn1.32xlarge", "trn2.48xlarge"), instance_of("", "trn1.32xlarge"));
  try {
    instance_of("trn9", "");
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_TRUE(std::string(e.what()).starts_with("TRELLIS_INSTANCE=trn9: expected none, or one of trn1.32xlarge, "))
        << e.what();
  }
}

TEST(Instances, AChipOfTrn2BeginsWithItsOwnInterfaceAndGoesOnBehindItsSwitch) {
  const auto zero = buses_for("trn2.48xlarge", {0});
  EXPECT_EQ(zero[0], "0000:c9:00.0");
  EXPECT_EQ(zero[1], "0000:ca:00.0");
  EXPECT_EQ(zero[2], "0000:56:00.0");  // the others keep their order
  const auto ten = buses_for("trn2.48xlarge", {10});
  EXPECT_EQ(ten[0], "0000:82:00.0");
  EXPECT_EQ(ten[1], "0000:83:00.0");
}

TEST(Instances, RailsOfSeveralChipsGoOverEachChipsInterface) {
  const auto first = buses_for("trn2.48xlarge", {4, 5, 6, 7});
  EXPECT_EQ((std::vector(first.begin(), first.begin() + 4)),
            (std::vector<std::string>{"0000:6c:00.0", "0000:57:00.0", "0000:56:00.0", "0000:6d:00.0"}));
}

TEST(Instances, ChipsOfTrn1ThatShareTwoInterfacesTakeTurns) {
  EXPECT_EQ(buses_for("trn1.32xlarge", {0})[0], "0000:10:19.0");
  EXPECT_EQ(buses_for("trn1.32xlarge", {1})[0], "0000:10:19.0");
  EXPECT_EQ(buses_for("trn1.32xlarge", {12})[0], "0000:10:1a.0");
  EXPECT_EQ(buses_for("trn1.32xlarge", {13})[0], "0000:10:1a.0");
  EXPECT_EQ(buses_for("trn1.32xlarge", {13})[1], "0000:10:19.0");
  EXPECT_EQ(buses_for("trn1.32xlarge", {15})[0], "0000:a0:1a.0");
}

TEST(Instances, InterfacesThatTheMapDoesNotKnowStayAsTheyWere) {
  const std::vector<FabricNic> nics = {{"a", "0000:01:00.0"}, {"b", ""}, {"c", "0000:02:00.0"}};
  EXPECT_EQ(by_chips(nics, *instance_of("", "trn2.48xlarge"), {3}, {2, 0, 1}), (std::vector<std::size_t>{2, 0, 1}));
}

TEST(Instances, TheChipsOfAProcessAreThoseOfItsVisibleCoresOrItsShare) {
  const InstanceType& trn2 = *instance_of("", "trn2.48xlarge");  // 64 logical cores
  using Chips = std::vector<int>;
  EXPECT_EQ(chips_of_process(trn2, {0, 1}), Chips{});
  EXPECT_EQ(chips_of_process(trn2, {0, 64}), Chips{0});
  EXPECT_EQ(chips_of_process(trn2, {63, 64}), Chips{15});
  EXPECT_EQ(chips_of_process(trn2, {1, 8}), (Chips{2, 3}));
  EXPECT_EQ(chips_of_process(trn2, {99, 100}), Chips{15});
  const Visible some("6-9,60");
  EXPECT_EQ(chips_of_process(trn2, {0, 64}), (Chips{1, 2, 15}));
  EXPECT_THROW(chips_of_process(*instance_of("", "trn1.32xlarge"), {0, 1}), std::invalid_argument);  // it has 32
}

TEST(Instances, ALineAtFaultIsNamed) {
  const std::pair<const char*, const char*> wrong[] = {
      {"chips 16", "instances, line 1: expected instance NAME first"},
      {"instance a\nchips x", "instances, line 2: 'x': expected a number"},
      {"instance a\nchips 2\nnic 0000:1:0.0 0,2", "instances, line 3: chip 2: expected one of 2"},
      {"instance a\nchips 2\n# nothing\nnic 1", "instances, line 4: expected chips N, cores N L, or nic"}};
  for (const auto& [text, said] : wrong) {
    try {
      read_instances(text);
      FAIL() << text;
    } catch (const std::invalid_argument& e) {
      EXPECT_TRUE(std::string(e.what()).starts_with(said)) << e.what();
    }
  }
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
