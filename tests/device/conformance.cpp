// Every check of the conformance suite on every kind of device.
#include "device/conformance/conformance.h"
#include "device/capabilities.h"
#include "device/memory_accounting.h"
#include "device/program.h"
#include "device/topology.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/device/standin.h"

namespace trellis::device {
namespace {

class Conformance : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(Conformance, Holds) {
  const auto& [device, name] = GetParam();
  const auto check = checks().find(name);
  ASSERT_NE(check, checks().end());
  use_standin();
  listen_at_free_ports();
  const CheckResult verdict = run_check(check->second, *open(device));
  if (verdict.outcome == CheckStatus::not_needed) GTEST_SKIP() << verdict.why;
  EXPECT_EQ(verdict.outcome, CheckStatus::passed) << check->second.promise << "\n" << verdict.why;
}

std::vector<std::string> devices() {
  return {"host", "neuron", "sim:trn1.2xlarge", "sim:trn2.48xlarge", "sim:trn3.gen1"};
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, check] : checks()) out.push_back(name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, Conformance, testing::Combine(testing::ValuesIn(devices()), testing::ValuesIn(names())),
                         [](const auto& given) {
                           std::string text = std::get<0>(given.param) + " " + std::get<1>(given.param);
                           std::ranges::replace_if(
                               text, [](char c) { return std::isalnum(c) == 0; }, '_');
                           return text;
                         });

// A device that does something wrong, on which each check must fail.
class Wrong : public Device {
 public:
  explicit Wrong(std::shared_ptr<Device> right) : right_(std::move(right)) {}
  std::string_view name() const override { return "wrong"; }
  Capabilities capabilities() const override { return right_->capabilities(); }
  const Topology& topology() const override { return topology_; }
  void* allocate(std::size_t bytes, std::string_view what) override {
    void* const at = right_->allocate(bytes, what);
    right_->fill(at, std::byte{1}, bytes);
    return at;
  }
  void release(void* p) override {
    try {
      right_->release(p);
    } catch (const std::invalid_argument&) {
    }
  }
  MemoryUse memory() const override { return {}; }
  Window window() const override { return right_->window(); }
  InWindow find(const void* data, std::size_t bytes) const override { return right_->find(data, bytes); }
  std::unique_ptr<Shared> share(void* data, std::size_t bytes) override { return right_->share(data, bytes); }
  std::unique_ptr<Attached> attach(void* data, std::size_t bytes) override {
    if (data == nullptr) return nullptr;
    copy_.assign(static_cast<std::byte*>(data), static_cast<std::byte*>(data) + bytes);
    return right_->attach(copy_.data(), bytes);
  }
  Exported export_memory(const void* data, std::size_t bytes) override {
    return right_->export_memory(static_cast<const std::byte*>(data) + 4096, bytes - 4096);
  }
  std::size_t allocated_bytes() const override { return 0; }
  using Device::copy;
  void copy(void* dst, const void* src, std::size_t bytes, kernels::Stores stores) override {
    if (bytes != 0) right_->copy(dst, src, bytes - 1, stores);
  }
  void fill(void* dst, std::byte value, std::size_t bytes) override { right_->fill(dst, value, bytes); }
  void reduce(kernels::Reduction, kernels::DType type, std::span<const void* const> sources, void* dst, std::size_t n,
              const kernels::ReduceOptions& o) override {
    right_->reduce(kernels::Reduction::max, type, sources, dst, n, o);
  }
  void divide(kernels::DType, void*, std::size_t, std::uint32_t) override {}
  void launch(const KernelLaunch&) override {}
  std::unique_ptr<LoadedProgram> load(std::span<const std::byte> bytes) override { return right_->load(bytes); }
  std::unique_ptr<Stream> stream() override { return std::make_unique<Eager>(); }
  std::unique_ptr<Event> event() override { return right_->event(); }

 private:
  struct Eager : Stream {
    void submit(std::function<void()> work) override {
      try {
        work();
      } catch (const std::exception&) {
      }
    }
    bool idle() const override { return false; }
    void synchronize() override {}
    bool failed() const override { return false; }
    Time now() const override { return 0; }
  };
  const std::shared_ptr<Device> right_;
  Topology topology_ = {.machine = "", .chip = "", .cores = 0};
  std::vector<std::byte> copy_;
};

TEST(Conformance, EveryCheckFindsAWrongDevice) {
  for (const auto& [name, check] : checks()) {
    // The wrong device's stream does work at once: it keeps the order of events, and the other two checks would wait
    // for ever.
    if (check.name == "events" || check.name == "overlap" || check.name == "failure") continue;
    Wrong wrong(open("sim:trn2.48xlarge"));
    EXPECT_EQ(run_check(check, wrong).outcome, CheckStatus::failed) << check.name;
  }
}

}  // namespace
}  // namespace trellis::device
