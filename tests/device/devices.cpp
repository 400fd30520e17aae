// What every device must do.
#include "device/device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace trellis::device {
namespace {

class Devices : public testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<Device> device_ = open(GetParam());
};

TEST_P(Devices, MemoryIsZeroAlignedAndApart) {
  std::vector<std::byte*> all;
  for (std::size_t bytes : {1, 4096, 5000, 1'000'000, 0}) {
    all.push_back(static_cast<std::byte*>(device_->allocate(bytes)));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back()) % 4096, 0u);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(all.back()[i], std::byte{0});
    if (bytes != 0) std::memset(all.back(), static_cast<int>(all.size()), bytes);
  }
  EXPECT_EQ(all[0][0], std::byte{1});
  EXPECT_EQ(all[3][999'999], std::byte{4});
  EXPECT_GT(device_->allocated_bytes(), 1'000'000u);
  for (std::byte* p : all) device_->release(p);
  EXPECT_EQ(device_->allocated_bytes(), 0u);
}

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

TEST_P(Devices, AStreamKeepsItsOrder) {
  std::vector<int> seen;
  const auto stream = device_->stream();
  for (int i = 0; i < 1000; ++i) stream->submit([&seen, i] { seen.push_back(i); });
  stream->synchronize();
  EXPECT_TRUE(stream->idle());
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST_P(Devices, AFailureEndsWhatWasHandedInAndIsToldOnce) {
  const auto stream = device_->stream();
  std::atomic<bool> go = false, ran = false;
  stream->submit([&] {
    while (!go) std::this_thread::yield();
    throw std::runtime_error("it failed");
  });
  stream->submit([&] { ran = true; });
  const auto event = device_->event();
  event->record(stream.get());
  go = true;
  event->synchronize();  // what can't happen any more is not waited for
  EXPECT_THROW(stream->synchronize(), std::runtime_error);
  EXPECT_FALSE(ran);
  stream->submit([&] { ran = true; });
  stream->synchronize();
  EXPECT_TRUE(ran);
}

TEST_P(Devices, EventsOrderStreams) {
  const auto first = device_->stream(), second = device_->stream();
  const auto event = device_->event();
  EXPECT_TRUE(event->ready());
  std::atomic<int> value = 0;
  first->submit([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    value = 1;
  });
  event->record(first.get());
  event->wait(second.get());
  int seen = -1;
  second->submit([&] { seen = value; });
  second->synchronize();
  EXPECT_EQ(seen, 1);
  EXPECT_TRUE(event->ready());
  event->record(nullptr);
  EXPECT_TRUE(event->ready());
}

TEST_P(Devices, Arithmetic) {
  auto *const a = static_cast<float*>(device_->allocate(4000)), *const b = static_cast<float*>(device_->allocate(4000));
  for (int i = 0; i < 1000; ++i) a[i] = static_cast<float>(i);
  device_->copy(b, a, 4000, kernels::Stores::streaming);
  const void* const sources[] = {a, b};
  device_->reduce(kernels::Reduction::sum, kernels::DType::f32, sources, b, 1000, {});
  EXPECT_EQ(b[999], 1998.0F);
  device_->divide(kernels::DType::f32, b, 1000, 2);
  EXPECT_EQ(std::memcmp(a, b, 4000), 0);
}

INSTANTIATE_TEST_SUITE_P(All, Devices, testing::Values("host"));

TEST(Device, AnUnknownOneIsRefusedByName) {
  try {
    open("abacus");
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(), "no device is called 'abacus'; known is host");
  }
}

}  // namespace
}  // namespace trellis::device
