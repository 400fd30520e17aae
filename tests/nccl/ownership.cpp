// Memory that the library allocates for itself cannot be freed from outside.
#include "ccl/api/trellis.h"
#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

constexpr auto bad = ncclInvalidArgument;

// A communicator's scratch often lies where memory was that the program has freed.
TEST(NcclMemory, AStaleAddressFreesNothingOfACommunicator) {
  int freed = 0;
  for (std::size_t bytes = 4096; bytes <= std::size_t{1} << 20; bytes *= 2) {
    void* piece = nullptr;
    ASSERT_TRUE(done(ncclMemAlloc(&piece, bytes)));
    ASSERT_TRUE(done(ncclMemFree(piece)));
    const Cliques c(2);
    float a[2][8] = {};
    ASSERT_TRUE(done(ncclGroupStart()));
    for (int r = 0; r < 2; ++r) EXPECT_TRUE(done(ncclAllReduce(a[r], a[r], 8, ncclFloat, ncclSum, c[r], nullptr)));
    ASSERT_TRUE(done(ncclGroupEnd()));
    EXPECT_TRUE(refused(ncclMemFree(piece), bad, "was not given by ncclMemAlloc, or has been freed"));
    EXPECT_EQ(cudaFree(piece), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFreeHost(piece), cudaErrorInvalidValue);
    EXPECT_EQ(trellis_free(piece), TRELLIS_INVALID_ARGUMENT);
    ++freed;
  }
  EXPECT_EQ(freed, 9);
  cudaGetLastError();
}

TEST(NcclMemory, IsFreedByTheMatchingCallAlone) {
  struct Kind {
    const char* name;
    std::function<void*()> allocate;
    std::function<bool(void*)> free;
  };
  const auto of = [](auto&& allocate) {
    void* memory = nullptr;
    EXPECT_EQ(static_cast<int>(allocate(&memory)), 0);
    return memory;
  };
  const Kind kinds[] = {
      {"ncclMemAlloc", [&] { return of([](void** m) { return ncclMemAlloc(m, 100); }); },
       [](void* m) { return ncclMemFree(m) == ncclSuccess; }},
      {"cudaMalloc", [&] { return of([](void** m) { return cudaMalloc(m, 100); }); },
       [](void* m) { return cudaFree(m) == cudaSuccess; }},
      {"cudaMallocHost", [&] { return of([](void** m) { return cudaMallocHost(m, 100); }); },
       [](void* m) { return cudaFreeHost(m) == cudaSuccess; }},
      {"trellis_alloc", [&] { return of([](void** m) { return trellis_alloc(m, 100); }); },
       [](void* m) { return trellis_free(m) == TRELLIS_OK; }},
  };
  for (const Kind& one : kinds)
    for (const Kind& other : kinds) {
      SCOPED_TRACE(std::string(one.name) + ", freed as by " + other.name);
      void* const memory = one.allocate();
      EXPECT_EQ(other.free(memory), &one == &other);
      EXPECT_EQ(one.free(memory), &one != &other);
    }
  cudaGetLastError();
}

}  // namespace
}  // namespace trellis::nccl
