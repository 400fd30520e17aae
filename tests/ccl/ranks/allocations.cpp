// A call like an earlier one allocates nothing on the heap.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#include "ccl/group.h"
#include "tests/ccl/ranks/run.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
thread_local std::size_t allocations = 0;  // of this thread
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace trellis::ccl {
namespace {

constexpr int like_calls = 20, most_rounds = 20;

// The allocations of ranks, which are threads, while each repeats the call; "": none. A rank that waits for long may
// allocate when it checks whether the others still live, so one round without allocations is enough: those of the call
// itself would be in every round.
template <class Call>
std::string allocated_by(const Call& call) {
  return run_ranks("loopback", 2, [&](Communicator& c) {
    for (int i = 0; i < like_calls; ++i) call(c);
    std::size_t least = SIZE_MAX;
    for (int round = 0; round < most_rounds; ++round) {
      const std::size_t before = allocations;
      for (int i = 0; i < like_calls; ++i) call(c);
      least = std::min(least, allocations - before);
    }
    if (least != 0) throw std::runtime_error(std::to_string(least) + " allocations");
  });
}

TEST(Allocations, AreCounted) {
  EXPECT_NE(allocated_by([](Communicator&) { ::operator delete(::operator new(8)); }), "");
}

TEST(Allocations, NoneForACollective) {
  EXPECT_EQ(allocated_by([](Communicator& c) {
              float in[3000] = {}, out[3000];
              c.all_reduce(in, out, 3000, kernels::DType::f32);
              c.broadcast(out, out, 3, kernels::DType::f32, 1);
              c.barrier();
            }),
            "");
}

TEST(Allocations, NoneForAGroup) {
  EXPECT_EQ(allocated_by([](Communicator& c) {
              float in[300] = {}, out[300];
              Group group;
              c.send(in, 300, kernels::DType::f32, 1 - c.rank());
              c.recv(out, 300, kernels::DType::f32, 1 - c.rank());
              c.all_reduce(in, in, 300, kernels::DType::f32);
              group.end();
            }),
            "");
}

long page_faults() {  // of this thread
  rusage used = {};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_minflt;
}

// A first touch takes microseconds, and a small operation a fraction of one.
TEST(Allocations, NorDoTheFirstThousandCallsTouchFreshPages) {
  EXPECT_EQ(run_ranks("loopback", 2,
                      [](Communicator& c) {
                        float in[2] = {}, out[2];
                        const auto call = [&] { c.all_reduce(in, out, 2, kernels::DType::f32); };
                        for (int i = 0; i < like_calls; ++i) call();
                        const long before = page_faults();
                        for (int i = 0; i < 1000; ++i) call();
                        if (const long faults = page_faults() - before; faults > 4)
                          throw std::runtime_error(std::to_string(faults) + " page faults");
                      }),
            "");
}

}  // namespace
}  // namespace trellis::ccl

#endif
