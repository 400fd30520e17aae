// What devices with memory in a window must do; conformance.cpp has what all devices must do.
#include "device/device.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "device/channel.h"
#include "device/topology.h"
#include "tests/device/standin.h"

namespace trellis::device {
namespace {

class Devices : public testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<Device> device_ = open(GetParam());
};

TEST_P(Devices, WhatIsReleasedIsUsedAgain) {
  void* const first = device_->allocate(10'000);
  void* const second = device_->allocate(10'000);
  device_->release(first);
  EXPECT_EQ(device_->allocate(5'000), first);
  EXPECT_EQ(static_cast<std::byte*>(device_->allocate(5'000))[0], std::byte{0});
  device_->release(second);
  EXPECT_THROW(device_->release(second), std::invalid_argument);
  int elsewhere = 0;
  EXPECT_THROW(device_->release(&elsewhere), std::invalid_argument);
  device_->release(nullptr);
  EXPECT_THROW(device_->allocate(SIZE_MAX), std::bad_alloc);
}

// Memory as from malloc, which does not begin and end at page borders.
class Own {
 public:
  explicit Own(std::size_t bytes) : all_(bytes + 4096) {
    const auto address = reinterpret_cast<std::uintptr_t>(all_.data());
    data_ = all_.data() + (4096 - address % 4096) % 4096 + 16;
    bytes_ = bytes - 16;
    for (std::size_t i = 0; i < bytes_; ++i) data_[i] = value(i);
  }
  static std::byte value(std::size_t i) { return static_cast<std::byte>(i * 7 + i / 4096); }
  bool is_as_it_was() const {
    for (std::size_t i = 0; i < bytes_; ++i)
      if (data_[i] != value(i)) return false;
    return true;
  }
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::vector<std::byte> all_;
  std::byte* data_;
  std::size_t bytes_;
};

TEST_P(Devices, SharedMemoryStaysWhereItIsAndIsInTheWindow) {
  const Own own(10 * 4096 + 100);
  EXPECT_EQ(device_->find(own.data(), own.bytes()).outside, own.bytes());
  {
    const auto shared = device_->share(own.data(), own.bytes());
    EXPECT_TRUE(own.is_as_it_was());
    EXPECT_EQ(shared->bytes(), 9 * 4096u) << "its whole pages";
    EXPECT_EQ(device_->allocated_bytes(), shared->bytes());
    const InWindow found = device_->find(own.data(), own.bytes());
    ASSERT_EQ(found.outside, 4096u - 16);
    ASSERT_EQ(found.bytes, 9 * 4096u);
    const std::byte* const there = device_->window().base + found.offset;
    EXPECT_EQ(std::memcmp(there, own.data() + found.outside, found.bytes), 0);
    own.data()[5000] = std::byte{99};
    EXPECT_EQ(there[5000 - found.outside], std::byte{99}) << "one page, two places";
    own.data()[5000] = Own::value(5000);
    const InWindow part = device_->find(own.data() + 2 * 4096, 4096);
    EXPECT_EQ(part.outside, 0u);
    EXPECT_EQ(part.offset, found.offset + 4096 + 16);
    EXPECT_EQ(part.bytes, 4096u);
    EXPECT_EQ(device_->find(own.data() + 10 * 4096, 50).outside, 50u) << "after its last whole page";
  }
  EXPECT_TRUE(own.is_as_it_was());
  EXPECT_EQ(device_->find(own.data(), own.bytes()).outside, own.bytes());
  EXPECT_EQ(device_->allocated_bytes(), 0u);
}

TEST_P(Devices, MemoryIsSharedUntilTheLastUserGoes) {
  const Own own(20 * 4096);
  auto first = device_->share(own.data(), own.bytes()), within = device_->share(own.data() + 8192, 3 * 4096);
  EXPECT_EQ(within->bytes(), 2 * 4096u);
  first.reset();
  EXPECT_EQ(device_->find(own.data() + 8192, 4096).outside, 0u);
  within.reset();
  EXPECT_EQ(device_->find(own.data() + 8192, 4096).outside, 4096u);
  EXPECT_TRUE(own.is_as_it_was());
}

TEST_P(Devices, WhatCanNotBeSharedIsLeftAsItIs) {
  std::byte on_the_stack[3 * 4096] = {};
  EXPECT_EQ(device_->share(on_the_stack, sizeof on_the_stack)->bytes(), 0u);
  EXPECT_EQ(device_->share(reinterpret_cast<void*>(8192), 3 * 4096)->bytes(), 0u) << "nothing is there";
  static const std::byte fixed[3 * 4096] = {std::byte{1}};
  EXPECT_EQ(device_->share(const_cast<std::byte*>(fixed), sizeof fixed)->bytes(), 0u);
  const Own little(1000);
  EXPECT_EQ(device_->share(little.data(), little.bytes())->bytes(), 0u);
  void* const allocated = device_->allocate(10'000);
  EXPECT_EQ(device_->share(allocated, 10'000)->bytes(), 10'000u) << "it is there as it is";
  device_->release(allocated);
  EXPECT_EQ(device_->allocated_bytes(), 0u);
}

// Memory was unmapped while it was shared, and other memory is at its address by now: the device must leave that alone.
TEST_P(Devices, MemoryThatWasGivenBackTooSoonIsLeftAlone) {
  constexpr std::size_t bytes = 8 * 4096;
  const auto map = [](void* where, int fixed) {
    return static_cast<char*>(mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0));
  };
  char* const memory = map(nullptr, 0);
  auto shared = device_->share(memory, bytes);
  ASSERT_EQ(shared->bytes(), bytes);
  ASSERT_EQ(munmap(memory, bytes), 0);
  ASSERT_EQ(map(memory, MAP_FIXED), memory);
  std::memset(memory, 5, bytes);
  EXPECT_THROW(device_->share(memory, bytes), std::invalid_argument);
  shared.reset();
  EXPECT_EQ(memory[bytes - 1], 5);
  EXPECT_EQ(device_->share(memory, bytes)->bytes(), bytes);
  munmap(memory, bytes);
}

// As above, but only the first half of the memory had been shared, and all of the new memory is to be.
TEST_P(Devices, MoreMemoryAtAnAddressThatWasGivenBackTooSoonIsLeftAlone) {
  constexpr std::size_t bytes = 8 * 4096;
  const auto map = [](void* where, std::size_t n, int fixed) {
    return static_cast<char*>(mmap(where, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0));
  };
  char* const memory = map(nullptr, 2 * bytes, 0);
  auto shared = device_->share(memory, bytes);
  ASSERT_EQ(shared->bytes(), bytes);
  ASSERT_EQ(munmap(memory, 2 * bytes), 0);
  ASSERT_EQ(map(memory, 2 * bytes, MAP_FIXED), memory);
  std::memset(memory, 5, 2 * bytes);
  EXPECT_THROW(device_->share(memory, 2 * bytes), std::invalid_argument);
  EXPECT_EQ(memory[2 * bytes - 1], 5);
  shared.reset();
  EXPECT_EQ(memory[0], 5);
  EXPECT_EQ(device_->allocated_bytes(), 0u);
  EXPECT_EQ(device_->share(memory, 2 * bytes)->bytes(), 2 * bytes);
  munmap(memory, 2 * bytes);
}

// Runs a part of a test in a child process, which stops in between and lets its parent go on.
class Child {
 public:
  template <class Work>
  explicit Child(Work work) {
    if (pipe(to_parent_) != 0 || pipe(to_child_) != 0) throw std::runtime_error("no pipe");
    process_ = fork();
    if (process_ != 0) return;
    alarm(60);
    const auto turn_to_parent = [this] {
      tell(to_parent_);
      hear(to_child_);
    };
    _exit(work(turn_to_parent) ? 0 : 1);
  }
  void wait_for_turn() const { hear(to_parent_); }
  void go_on() const { tell(to_child_); }
  bool ends_well() const {
    int status = -1;
    return waitpid(process_, &status, 0) == process_ && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    for (const int fd : {to_parent_[0], to_parent_[1], to_child_[0], to_child_[1]}) close(fd);
  }

 private:
  static void tell(const int (&to)[2]) { [[maybe_unused]] const auto written = write(to[1], "x", 1); }
  static void hear(const int (&from)[2]) {
    char byte = 0;
    [[maybe_unused]] const auto got = read(from[0], &byte, 1);
  }
  int to_parent_[2], to_child_[2];
  pid_t process_ = 0;
};

TEST_P(Devices, AForkedProcessCannotChangeItsParentsMemory) {
  constexpr std::size_t page = 4096;
  auto* const memory = static_cast<char*>(device_->allocate(2 * page));
  std::memset(memory, 1, 2 * page);
  const Child child([&](auto turn_to_parent) {
    memory[0] = 2;
    turn_to_parent();
    return memory[0] == 2 && memory[page] == 3;  // a page that it has not written shows the parent's present data
  });
  child.wait_for_turn();
  EXPECT_EQ(memory[0], 1);
  memory[0] = memory[page] = 3;
  child.go_on();
  EXPECT_TRUE(child.ends_well());
  device_->release(memory);
}

TEST_P(Devices, WhatAForkedProcessAllocatesIsZeroAndItsOwn) {
  constexpr std::size_t bytes = 64 * 4096;
  const Child child([&](auto turn_to_parent) {
    turn_to_parent();
    for (int round = 0; round < 2; ++round) {
      auto* const own = static_cast<char*>(device_->allocate(bytes));
      for (std::size_t i = 0; i < bytes; ++i)
        if (own[i] != 0) return false;
      std::memset(own, 9, bytes);
      device_->release(own);
    }
    return true;
  });
  child.wait_for_turn();
  auto* const memory = static_cast<char*>(device_->allocate(bytes));
  std::memset(memory, 7, bytes);
  child.go_on();
  EXPECT_TRUE(child.ends_well());
  EXPECT_EQ(memory[0], 7);
  device_->release(memory);
}

// Threads that served its channels are not in a forked process, so it waits for none.
TEST_P(Devices, AForkedProcessLeavesItsParentsChannelsAlone) {
  listen_at_free_ports();
  const PeerCore self{"127.0.0.1", device_->topology().core};
  auto from = device_->channels()->connect(self), to = device_->channels()->accept(self);
  while (!from->connected() || !to->connected()) std::this_thread::yield();
  const Child child([&](auto) {
    from.reset(), to.reset(), device_.reset();
    return true;
  });
  EXPECT_TRUE(child.ends_well());
  char sent = 7, received = 0;
  const auto message = from->post(&sent, 1), arrival = to->post(&received, 1);
  while (!message->done() || !arrival->done()) std::this_thread::yield();
  EXPECT_EQ(received, 7);
}

INSTANTIATE_TEST_SUITE_P(All, Devices, testing::Values("host", "sim:trn2.48xlarge"));

TEST(Device, AProcessHasOneAndItsChildAnother) {
  const auto host = host_of_process();
  EXPECT_EQ(host_of_process(), host);
  const pid_t child = fork();
  if (child == 0) {
    const auto own = host_of_process();
    _exit(own == host || own != host_of_process());
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Device, AnUnknownOneIsRefusedByName) {
  try {
    open("abacus");
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(), "no device is called 'abacus'; known are host, neuron, sim:MACHINE");
  }
}

}  // namespace
}  // namespace trellis::device
