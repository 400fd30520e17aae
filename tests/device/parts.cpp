// Visible cores, containers of programs, memory accounts, and what a device says when its library is missing or old.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "device/backends.h"
#include "device/capabilities.h"
#include "device/memory_accounting.h"
#include "device/native_collective.h"
#include "device/neff/neff.h"
#include "device/program.h"
#include "device/topology.h"
#include "device/visible_cores.h"
#include "tests/device/standin.h"
#include "tests/why.h"

namespace trellis::device {
namespace {

TEST(VisibleCores, AreThoseOfNeuronsVariables) {
  const auto cores = [](const char* text) { return visible_cores({.visible = text}, 12); };
  EXPECT_EQ(cores("3"), std::vector<int>({3}));
  EXPECT_EQ(cores("2-4"), std::vector<int>({2, 3, 4}));
  EXPECT_EQ(cores("8,0-1,11"), std::vector<int>({8, 0, 1, 11}));
  EXPECT_EQ(visible_cores({.visible = "5", .count = 3}, 12), std::vector<int>({5})) << "visible cores go first";
  EXPECT_EQ(visible_cores({.count = 3}, 12), std::vector<int>({0, 1, 2}));
  EXPECT_EQ(visible_cores({.count = 0}, 2).size(), 2u);
  for (const char* wrong : {"", "1-", "4-2", "12", "0-12", "1,1", "0-3,2", "a", "-1", "1,,2"}) {
    if (*wrong == '\0') continue;
    const std::string said = why<std::exception>([&] { cores(wrong); });
    EXPECT_NE(said.find(std::string("NEURON_RT_VISIBLE_CORES=") + wrong), std::string::npos) << wrong << ": " << said;
  }
  EXPECT_NE(why<std::exception>([] { visible_cores({.count = 13}, 12); }).find("12 cores"), std::string::npos);
}

TEST(VisibleCores, LogicalCoresAreOfTheChipsSize) {
  EXPECT_EQ(logical_size({}, "trn2", 2, 8), 2);
  EXPECT_EQ(logical_size({.logical_size = 1}, "trn2", 2, 8), 1);
  EXPECT_NE(
      why<std::exception>([] { logical_size({.logical_size = 2}, "trn1", 1, 2); }).find("NEURON_LOGICAL_NC_CONFIG=2"),
      std::string::npos);
  EXPECT_NE(why<std::exception>([] { logical_size({.logical_size = 3}, "trn2", 2, 8); }), "");
}

TEST(VisibleCores, TheEnvironmentDecidesWhatIsOpened) {
  setenv("NEURON_RT_VISIBLE_CORES", "6-7", 1);  // NOLINT(concurrency-mt-unsafe): no other thread runs
  setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);   // NOLINT(concurrency-mt-unsafe)
  const auto device = open("sim:trn2.48xlarge", {.core = 1});
  const std::string said = why<std::exception>([] { open("sim:trn2.48xlarge", {.core = 2}); });
  unsetenv("NEURON_RT_VISIBLE_CORES");   // NOLINT(concurrency-mt-unsafe)
  unsetenv("NEURON_LOGICAL_NC_CONFIG");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(device->topology().core, 7);
  EXPECT_EQ(device->topology().cores, 128);
  EXPECT_EQ(device->topology().visible, 2);
  EXPECT_EQ(device->topology().chip_of_core(), 0);
  EXPECT_EQ(device->memory().limit, std::size_t{12} << 30);
  EXPECT_NE(said.find("core 2"), std::string::npos) << said;
}

TEST(Simulated, HasTheMachinesLinksAndInterfaces) {
  const auto device = open("sim:trn2.48xlarge");
  const Topology& t = device->topology();
  EXPECT_EQ(t.chips, 16);
  EXPECT_EQ(t.cores_of_chip(), 4);
  EXPECT_EQ(t.links.size(), 64u) << "four of each chip";
  EXPECT_EQ(t.nics.size(), 16u);
  EXPECT_NE(why<std::exception>([] { open("sim:abacus"); }).find("abacus"), std::string::npos);
  EXPECT_NE(why<std::exception>([] { open("sim:ring:8"); }).find("no chip is known"), std::string::npos);
}

TEST(Simulated, TimingOnlyTakesTheSameTime) {
  const auto container = sample_container();
  const auto time_of = [&](bool timing_only) {
    const auto device = open("sim:trn2.48xlarge", {.timing_only = timing_only});
    const auto program = device->load(container);
    std::vector<Binding> bound;
    for (const ProgramOperand& o : program->operands()) bound.push_back({o.name, device->allocate(o.bytes), o.bytes});
    program->run(bound);
    return program->time();
  };
  EXPECT_GT(time_of(true), 0);
  EXPECT_EQ(time_of(true), time_of(false));
}

TEST(Neuron, SaysWhatIsMissing) {
  const auto with = [](const char* file) {
    setenv("TRELLIS_LIBNRT", file, 1);  // NOLINT(concurrency-mt-unsafe): no other thread runs
    std::string said = why<std::exception>([] { open("neuron"); });
    use_standin();
    return said;
  };
  const std::string absent = with("/nowhere/libnrt.so.1");
  EXPECT_NE(absent.find("/nowhere/libnrt.so.1"), std::string::npos) << absent;
  EXPECT_NE(absent.find("aws-neuronx-runtime-lib"), std::string::npos) << absent;
  const std::string old = with("libm.so.6");
  EXPECT_NE(old.find("libm.so.6 has no nrt_close, which SDK 2.7 has"), std::string::npos) << old;
  const nrt::NrtLibrary old_library("libm.so.6");
  EXPECT_EQ(old_library.missing_text("nrta_cc_prepare"), "libm.so.6 has no nrta_cc_prepare, which SDK 2.28 has");
  EXPECT_NE(why<std::exception>([&] { old_library.need(old_library.nrt_load, "nrt_load"); }).find("nrt_load"),
            std::string::npos);
}

TEST(Neuron, TheStandinHasEveryFunction) {
  const nrt::NrtLibrary l(TRELLIS_STANDIN);
  EXPECT_GT(nrt::functions().size(), 120u);
  for (const nrt::NrtFunctionInfo& f : nrt::functions()) EXPECT_NE(l.symbol(f.name), nullptr) << f.name;
}

TEST(Neuron, CoresAreTheVisibleOnes) {
  use_standin();
  EXPECT_NE(why<std::exception>([] { open("neuron", {.core = 64}); }).find("core 64"), std::string::npos);
  const auto a = open("neuron", {.core = 5}), b = open("neuron", {.core = 6});
  void *const on_a = a->allocate(100, "a"), *const on_b = b->allocate(100, "b");
  EXPECT_EQ(a->topology().chips, 16);
  EXPECT_GE(a->memory().used, 100u);
  EXPECT_NE(why<std::exception>([&] { b->release(on_a); }), "") << "memory of another core";
  a->release(on_a);
  b->release(on_b);
  const auto program = a->load(sample_container());
  EXPECT_NE(program->profile().find("tensor_tensor"), std::string::npos);
}

TEST(Neuron, CollectivesOfItsOwn) {
  use_standin();
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([rank] {
      const auto device = open("neuron", {.core = static_cast<int>(rank)});
      auto* const data = static_cast<std::byte*>(device->allocate(12'000, "gradients"));
      const std::vector<float> own(1000, static_cast<float>(rank + 1));
      device->copy(data, own.data(), 4000);
      NativeCollective c{
          .input = data, .output = data + 4000, .count = 1000, .group = {0, 1, 2}, .rank = rank, .world = 3};
      NativeCollectives& native = *device->collectives();
      EXPECT_NE(native.refuses(c).find("join"), std::string::npos);
      EXPECT_NE(native.join({.identity = 77, .number = rank, .size = 3}).identity, 0u);
      EXPECT_EQ(native.join({.identity = 78, .number = 0, .size = 9}).number, rank) << "the earlier world";
      EXPECT_EQ(native.refuses(c), "");
      const auto run = native.start(c, native.take_turn());
      while (!run->done()) std::this_thread::yield();
      float sum = 0;
      device->copy(&sum, data + 7996, 4);
      EXPECT_EQ(sum, 6.0F);
      c.op = kernels::Reduction::prod;
      EXPECT_NE(native.refuses(c).find("prod"), std::string::npos);
      EXPECT_THROW(native.start(c, native.take_turn()), Unsupported);
      c.op = kernels::Reduction::max;
      c.output = data + 9000;
      EXPECT_THROW(native.start(c, native.take_turn()), std::invalid_argument) << "past the end";
      float host[1000];
      c.output = host;
      EXPECT_NE(native.refuses(c).find("device's memory"), std::string::npos);
      device->release(data);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(open("host")->collectives(), nullptr);
  EXPECT_NE(open("host")->why_not(Capability::collectives).find("collectives"), std::string::npos);
}

// A collective of two cores, of which this is one and the other never comes.
struct AloneInAWorld {
  AloneInAWorld() {
    use_standin();
    setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);  // NOLINT(concurrency-mt-unsafe): no other thread runs
    device = open("neuron");
    native = device->collectives();
    data = static_cast<std::byte*>(device->allocate(8000, "gradients"));
    native->join({.identity = 77, .number = 0, .size = 2});
    collective = {.input = data, .output = data + 4000, .count = 1000, .group = {0, 1}, .rank = 0, .world = 2};
  }
  std::shared_ptr<Device> device;
  NativeCollectives* native;
  std::byte* data;
  NativeCollective collective;
};

TEST(Neuron, AWorldThatNobodyJoinedKeepsNobodyFromAnother) {
  use_standin();
  const auto device = open("neuron");
  NativeCollectives& native = *device->collectives();
  EXPECT_EQ(native.join({.identity = 76, .number = 5, .size = 2}).identity, 0u) << "device 5 of 2";
  EXPECT_NE(native.join({.identity = 77, .number = 0, .size = 2}).identity, 0u) << native.refuses({});
}

TEST(Neuron, ACollectiveThatIsNotHandedInGivesItsTurnBack) {
  const AloneInAWorld alone;
  const nrt::NrtLibrary n(TRELLIS_STANDIN);
  nrt::Tensor* t = nullptr;
  n.nrt_tensor_allocate(nrt::TensorPlacement::device, 0, 4, "t", &t);
  std::uint32_t group[] = {0, 1};
  nrt::CommInfo comm{group, 0, 2, 0, 2, 0};
  nrt::TensorList list{&t, 1};
  nrt::Status status = nrt::Status::success;
  for (int i = 0; i < 10'000 && status == nrt::Status::success; ++i) {
    nrt::CollectiveContext* context = nullptr;
    n.nrta_cc_prepare(&comm, &list, &list, nrt::NrtDType::f32, nrt::ReduceKind::add, nrt::CollectiveKind::all_reduce,
                      &context);
    status = n.nrta_cc_schedule(&context, 0, nullptr, nullptr);
  }
  ASSERT_EQ(status, nrt::Status::queue_full);
  EXPECT_THROW(alone.native->start(alone.collective, alone.native->take_turn()), std::system_error);
  EXPECT_NE(alone.native->take_turn(), nullptr);
}

TEST(Neuron, AnAbandonedCollectiveKeepsItsTurnUntilItEnds) {
  const AloneInAWorld alone;
  alone.native->start(alone.collective, alone.native->take_turn()).reset();
  EXPECT_EQ(alone.native->take_turn(), nullptr) << "the device still waits for the other member";
  bool is_free = false;
  for (int i = 0; i < 2000 && !is_free; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    is_free = alone.native->take_turn() != nullptr;
  }
  EXPECT_TRUE(is_free);
}

// The device gives back what it holds of the runtime before it closes the runtime.
TEST(Neuron, ItsLastDeviceEndsAnAbandonedCollective) {
  std::string failed;  // the last call of libnrt that failed in the thread
  std::thread([&] {
    const nrt::NrtLibrary n(TRELLIS_STANDIN);
    {
      const AloneInAWorld alone;
      alone.native->start(alone.collective, alone.native->take_turn()).reset();
    }
    failed = reinterpret_cast<const char* (*)()>(n.symbol("trellis_nrt_last_error"))();
  }).join();
  EXPECT_EQ(failed, "");
}

// `time` is that of the last run that ended.
TEST(Neuron, AProgramHasItsTimeOnceItsStreamIsIdle) {
  use_standin();
  const auto device = open("neuron");
  const auto program = device->load(sample_container());
  std::vector<Binding> bound;
  for (const ProgramOperand& o : program->operands()) bound.push_back({o.name, device->allocate(o.bytes), o.bytes});
  const auto stream = device->stream();
  program->run(bound, stream.get());
  while (!stream->idle()) std::this_thread::yield();
  EXPECT_GT(program->time(), 0);
}

TEST(Neff, WhatIsWrittenIsReadBack) {
  const auto bytes = write_neff("a name", "a program", 2);
  const Neff neff = read_neff(bytes);
  EXPECT_EQ(neff.header.name, "a name");
  EXPECT_EQ(neff.header.logical_size, 2u);
  EXPECT_EQ(program_of(neff), "a program");
  EXPECT_EQ(write_neff("a name", "a program", 2), bytes);
  EXPECT_NE(why<std::exception>([] { write_neff(std::string(300, 'x'), "", 1); }), "");
}

TEST(Neff, EveryDamageIsRefusedOrHarmless) {
  const auto whole = write_neff("n", "program", 1);
  for (std::size_t n = 0; n < whole.size(); n += 37)
    EXPECT_NE(why<std::exception>([&] { read_neff(std::span(whole).first(n)); }), "") << n;
  for (const std::size_t at : {8u, 16u, 1024u + 124u, 1024u + 150u}) {
    auto bad = whole;
    bad[at] ^= std::byte{0x11};
    EXPECT_NE(why<std::exception>([&] { read_neff(bad); }), "") << at;
  }
  EXPECT_NE(why<std::exception>([] { program_of(read_neff(foreign_container())); }).find("not public"),
            std::string::npos);
  auto packed = whole;
  packed[1024] = std::byte{0x1F}, packed[1025] = std::byte{0x8B};
  EXPECT_TRUE(read_neff(packed).is_compressed);
}

TEST(MemoryAccount, SaysWhoHoldsWhat) {
  MemoryAccount account("a device", 1000);
  int places[3] = {};
  for (int& p : places) account.reserve(100, "weights"), account.hold(&p, 100, "weights");
  const std::string said = why<std::exception>([&] { account.reserve(701, "activations"); });
  EXPECT_EQ(
      said,
      "a device: out of memory: 701 bytes for activations; 700 of 1000 bytes are free; weights holds 300 bytes in "
      "3 pieces");
  account.reserve(700, "the rest");
  account.cancel(700);
  EXPECT_EQ(account.release(&places[1]), 100u);
  EXPECT_EQ(account.release(&places[1]), std::nullopt);
  EXPECT_EQ(account.use().holders, std::vector<MemoryHolder>({{"weights", 200, 2}}));
}

}  // namespace
}  // namespace trellis::device
