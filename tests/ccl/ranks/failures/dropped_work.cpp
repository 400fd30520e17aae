// What the other ranks hear where a stream drops an operation, because what it held before has failed.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "ccl/failure/dump_on_signal.h"
#include "tests/ccl/ranks/run.h"
#include "tests/folder.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;

// The dumps of a process's other communicators may take long: here, until the other rank has heard.
TEST(DroppedWork, IsToldBeforeDumpsAreWritten) {
  class Slow : public SignalDumpTarget {
   public:
    explicit Slow(std::filesystem::path mark) : mark_(std::move(mark)) {}
    bool dump_for(std::uint32_t) override {
      for (const auto end = Clock::now() + 20s; !std::filesystem::exists(mark_) && Clock::now() < end;)
        std::this_thread::sleep_for(1ms);
      in_time = std::filesystem::exists(mark_);
      return true;
    }
    bool in_time = false;

   private:
    const std::filesystem::path mark_;
  };
  const Folder folder;
  const std::filesystem::path heard = folder.path() / "heard";
  const auto ranks = [&](Communicator& c) {
    float x = 1;
    if (c.rank() == 1) {
      try {
        c.all_reduce(&x, &x, 1, DType::f32);
      } catch (const Aborted&) {
        std::ofstream(heard) << "Aborted";
        return;
      }
      throw std::runtime_error("nothing was told");
    }
    Slow slow(heard);
    register_for_dumps(slow);
    std::atomic<bool> queued = false;
    const auto stream = c.device().stream();
    stream->submit([&] {
      while (!queued) std::this_thread::yield();
      throw std::runtime_error("a kernel has failed");
    });
    c.all_reduce(&x, &x, 1, DType::f32, {}, stream.get());
    queued = true;
    try {
      stream->synchronize();
    } catch (const std::runtime_error&) {
    }
    unregister_from_dumps(slow);
    if (!slow.in_time) throw std::runtime_error("the dumps came first");
  };
  EXPECT_EQ(run_processes(2, ranks, {.timeout = 30s, .dump = folder.path() / "dumps"}), "");
}

}  // namespace
}  // namespace trellis::ccl
