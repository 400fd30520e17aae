// What communicators hold of their process, and leave behind: descriptors, threads, and a port on which they listen.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "ccl/api/c/communicator.h"
#include "ccl/api/c/operations.h"
#include "ccl/communicator.h"
#include "ccl/rendezvous/unique_id.h"
#include "ccl/transports/open.h"
#include "net/sha256.h"
#include "net/socket.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;

constexpr Config patient = {.timeout = 20s};

void expect(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}

std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

bool comes_true(const std::function<bool()>& condition) {
  for (const Deadline end = Clock::now() + 60s; !condition(); std::this_thread::sleep_for(1ms))
    if (Clock::now() > end) return false;
  return true;
}

// Unique ids that rank 0 makes and all ranks use, one after another.
class Ids {
 public:
  UniqueId next(Rank rank) {
    const int number = taken_++;
    if (rank == 0) {
      ids_[static_cast<std::size_t>(number)] = make_unique_id();
      made_ = number + 1;
    }
    if (!comes_true([&] { return made_ > number; })) throw TimedOut("no id came");
    return ids_[static_cast<std::size_t>(number)];
  }

 private:
  static inline int taken_ = 0;  // in this process
  std::atomic<int> made_ = 0;
  std::array<UniqueId, 10'001> ids_;
};

// Runs the function in a process for each rank. Returns the message of one that failed; empty: none did.
std::string in_processes(Rank ranks, const std::function<void(Rank, Ids&)>& f) {
  struct Shared {
    Ids ids;
    char said[512];
  };
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Shared& shared = *new (memory) Shared();
  for (Rank r = 0; r < ranks; ++r) {
    if (fork() != 0) continue;
    alarm(300);
    try {
      f(r, shared.ids);
      _exit(0);
    } catch (const std::exception& e) {
      fmt::format("rank {}: {}", r, e.what()).copy(shared.said, sizeof shared.said - 1);
      _exit(1);
    }
  }
  std::string said;
  for (int status = 0; wait(&status) > 0;)
    if (status != 0) said = shared.said[0] != 0 ? shared.said : fmt::format("a rank ended with {}", status);
  munmap(memory, sizeof(Shared));
  return said;
}

float sum_over(Communicator& c) {
  float one = 1;
  c.all_reduce(&one, &one, 1, DType::f32);
  return one;
}

std::unique_ptr<Communicator> made(Ids& ids, Rank rank, Rank ranks) {
  const UniqueId id = ids.next(rank);
  return Communicator::create(store_for(id, Clock::now() + patient.timeout), rank, ranks, patient);
}

void allow_few_descriptors() {
  syscall(SYS_close_range, 3U, ~0U, 0U);  // closes what this process has inherited
  const rlimit few = {64, 64};
  setrlimit(RLIMIT_NOFILE, &few);
}

std::string left_of_communicators(int times) {
  constexpr Rank ranks = 2;
  return in_processes(ranks, [times](Rank rank, Ids& ids) {
    allow_few_descriptors();
    sum_over(*made(ids, rank, ranks));  // makes what all communicators share
    const auto idle = [] { return entries("/proc/self/task") == 1; };
    expect(comes_true(idle), "a thread stays behind");
    const std::ptrdiff_t before = entries("/proc/self/fd");
    for (int i = 0; i < times; ++i) expect(sum_over(*made(ids, rank, ranks)) == ranks, "a wrong sum");
    expect(comes_true([&] { return idle() && entries("/proc/self/fd") == before; }),
           fmt::format("{} threads, and {} descriptors, which were {}", entries("/proc/self/task"),
                       entries("/proc/self/fd"), before));
  });
}

TEST(Descriptors, NothingIsLeftOfCommunicatorsThatWereDestroyed) { EXPECT_EQ(left_of_communicators(200), ""); }

TEST(Descriptors, DISABLED_NorOfTenThousand) { EXPECT_EQ(left_of_communicators(10'000), ""); }

TEST(Descriptors, ALiveCommunicatorHoldsOneAtMost) {
  constexpr Rank ranks = 3;
  static constexpr int few = 4, many = 16;
  EXPECT_EQ(in_processes(ranks,
                         [](Rank rank, Ids& ids) {
                           std::vector<std::unique_ptr<Communicator>> all;
                           std::ptrdiff_t with_few = 0;
                           while (all.size() < many) {
                             all.push_back(made(ids, rank, ranks));
                             sum_over(*all.back());
                             if (all.size() == few) with_few = entries("/proc/self/fd");
                           }
                           // A rank that waits for long checks whether the others still live, and keeps a descriptor
                           // (pidfd) of each one's process.
                           constexpr std::ptrdiff_t shared = ranks - 1;
                           const auto one_each = [&] {
                             return entries("/proc/self/fd") - with_few <= many - few + shared;
                           };
                           expect(comes_true(one_each), fmt::format("{} communicators hold {} descriptors, and {} {}",
                                                                    few, with_few, many, entries("/proc/self/fd")));
                         }),
            "");
}

// Without descriptors rank 0 can't find out its host: it reports that, and does not seem to be on another host.
TEST(Descriptors, WithoutOneAHostIsNoOtherHost) {
  EXPECT_EQ(in_processes(1,
                         [](Rank, Ids&) {
                           allow_few_descriptors();
                           const auto device = device::host_of_process();
                           const auto store = memory_store();
                           std::vector<net::Descriptor> all;
                           while (all.emplace_back(dup(STDERR_FILENO))) {
                           }
                           const JoinOptions joining{
                               .rank = 0, .ranks = 2, .device = device.get(), .deadline = Clock::now() + 100ms};
                           int error = 0;
                           try {
                             open_transport(store, joining);
                           } catch (const std::system_error& e) {
                             error = e.code().value();
                           }
                           expect(error == EMFILE, fmt::format("error {}", error));
                         }),
            "");
}

bool anybody_at(int port) {
  return static_cast<bool>(net::connect_before(net::addresses_of("127.0.0.1", port).front(), Clock::now() + 60s));
}

// A job's ranks rendezvous again and again at its address; in between, nobody listens there.
TEST(Descriptors, AJobsMeetingPlaceIsClosedOnceAllHaveMet) {
  const int port = net::local_address(net::listen_at("127.0.0.1", 0)).port();
  EXPECT_EQ(in_processes(2,
                         [port](Rank rank, Ids&) {
                           setenv("RANK", std::to_string(rank).c_str(), 1);
                           setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
                           for (const auto& [name, value] : {std::pair("WORLD_SIZE", "2"),
                                                             {"LOCAL_RANK", "0"},
                                                             {"LOCAL_WORLD_SIZE", "2"},
                                                             {"MASTER_ADDR", "127.0.0.1"},
                                                             {"TRELLIS_SECRET", "s"}})
                             setenv(name, value, 1);
                           for (int again = 0; again < 3; ++again) {
                             trellis_comm comm = nullptr;
                             expect(trellis_comm_create_from_environment(&comm, nullptr) == TRELLIS_OK,
                                    trellis_last_error());
                             if (rank == 0)
                               expect(comes_true([port] { return !anybody_at(port); }), "somebody still listens");
                             trellis_barrier(comm, nullptr);  // keeps rank 1 from the next meeting until then
                             trellis_comm_destroy(comm);
                           }
                         }),
            "");
}

}  // namespace
}  // namespace trellis::ccl
