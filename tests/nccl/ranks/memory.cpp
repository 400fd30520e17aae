// Windows and registered buffers between processes: peers read them where they lie.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "ccl/api/nccl/nccl.h"

namespace trellis::nccl {
namespace {

constexpr std::size_t elements = std::size_t{1} << 20;
constexpr std::size_t ends_of_messages = std::size_t{64} << 10;  // bytes of slots for ends outside whole pages

// Memory that the two processes share.
struct Rendezvous {
  std::atomic<int> made;
  ncclUniqueId id;
  char said[2][256];
};

void expect(ncclResult_t result) {
  if (result != ncclSuccess)
    throw std::runtime_error(fmt::format("{}: {}", ncclGetErrorString(result), ncclGetLastError(nullptr)));
}

std::uint64_t memory_of(ncclComm_t comm) {
  std::uint64_t bytes = 0;
  expect(ncclCommMemStats(comm, ncclStatGpuMemTotal, &bytes));
  return bytes;
}

// How many bytes of slots a broadcast of this memory is the first to use: peers copy through slots what they cannot
// read directly. Throws when its result is wrong.
std::size_t slots_for(ncclComm_t comm, int rank, float* data) {
  float nothing = 0;
  expect(ncclAllReduce(&nothing, &nothing, 1, ncclFloat, ncclSum, comm, nullptr));
  const std::uint64_t before = memory_of(comm);
  for (std::size_t i = 0; i < elements; ++i) data[i] = rank == 0 ? static_cast<float>(i % 1000) : -1.0F;
  expect(ncclAllReduce(&nothing, &nothing, 1, ncclFloat, ncclSum, comm, nullptr));
  expect(ncclBroadcast(data, data, elements, ncclFloat, 0, comm, nullptr));
  expect(ncclAllReduce(&nothing, &nothing, 1, ncclFloat, ncclSum, comm, nullptr));
  for (std::size_t i = 0; i < elements; ++i)
    if (data[i] != static_cast<float>(i % 1000)) throw std::runtime_error(fmt::format("element {} is {}", i, data[i]));
  return 2 * (memory_of(comm) - before);
}

void expect_direct(std::size_t slots, const char* memory) {
  if (slots > ends_of_messages) throw std::runtime_error(fmt::format("{}: {} bytes of slots", memory, slots));
}

void be_rank(Rendezvous& meeting, int rank) {
  if (rank == 0) {
    expect(ncclGetUniqueId(&meeting.id));
    meeting.made = 1;
  }
  while (meeting.made == 0) usleep(100);
  setenv("TRELLIS_ALGORITHM", "broadcast=direct", 1);
  ncclComm_t comm = nullptr;
  expect(ncclCommInitRank(&comm, 2, meeting.id, rank));

  void* allocated = nullptr;
  ncclWindow_t window = nullptr;
  expect(ncclMemAlloc(&allocated, elements * sizeof(float)));
  expect(ncclCommWindowRegister(comm, allocated, elements * sizeof(float), &window, NCCL_WIN_COLL_SYMMETRIC));
  expect_direct(slots_for(comm, rank, static_cast<float*>(allocated)), "a symmetric window");
  expect(ncclCommWindowDeregister(comm, window));
  expect(ncclMemFree(allocated));

  std::vector<float> own(elements);
  void* handle = nullptr;
  expect(ncclCommRegister(comm, own.data(), elements * sizeof(float), &handle));
  expect_direct(slots_for(comm, rank, own.data()), "a registered buffer");
  expect(ncclCommDeregister(comm, handle));
  if (slots_for(comm, rank, own.data()) <= ends_of_messages)
    throw std::runtime_error("a buffer that is registered no more took no slots");
  expect(ncclCommRegister(comm, own.data(), elements * sizeof(float), &handle));  // ended by ncclCommDestroy
  expect(ncclCommDestroy(comm));
}

TEST(NcclWindows, AreReadWhereTheyLieByOtherProcesses) {
  void* const memory = mmap(nullptr, sizeof(Rendezvous), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Rendezvous& meeting = *new (memory) Rendezvous();
  for (int rank = 0; rank < 2; ++rank) {
    if (fork() != 0) continue;
    alarm(60);
    try {
      be_rank(meeting, rank);
      _exit(0);
    } catch (const std::exception& e) {
      std::string(e.what()).copy(meeting.said[rank], sizeof meeting.said[rank] - 1);
      _exit(1);
    }
  }
  for (int status = 0; wait(&status) > 0;) EXPECT_EQ(status, 0) << meeting.said[0] << " / " << meeting.said[1];
  munmap(memory, sizeof(Rendezvous));
}

}  // namespace
}  // namespace trellis::nccl
