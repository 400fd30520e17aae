// What ranks that join a communicator hear of one that fails, ends, or does not come.
#include "ccl/transports/join_watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <system_error>
#include <thread>
#include <vector>

#include "ccl/transports/open.h"
#include "device/host/host_device.h"
#include "net/descriptor.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

std::string text_of(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const PeerLost& e) {
    return fmt::format("lost {}: {}", e.rank, e.what());
  } catch (const std::exception& e) {
    return e.what();
  }
}

// The error with which a wait ends for a key that is never set.
std::exception_ptr waiting(JoinWatch& watch, std::chrono::milliseconds patience) {
  try {
    watch.store()->get("never", Clock::now() + patience);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

TEST(JoinWatch, WhoFailsTellsTheOthersAtOnce) {
  const auto store = memory_store();
  JoinWatch first(store, 0, 3, "here"), second(store, 1, 3, "here"), third(store, 2, 3, "here");
  std::thread fails([&] {
    const std::exception_ptr own =
        std::make_exception_ptr(std::system_error(EACCES, std::generic_category(), "opening a peer's memory"));
    EXPECT_EQ(text_of(second.failed(own)), "opening a peer's memory: Permission denied");
  });
  const std::string heard = "lost 1: rank 1 could not join: opening a peer's memory: Permission denied";
  EXPECT_EQ(text_of(waiting(first, 60s)), heard);
  EXPECT_EQ(text_of(waiting(third, 60s)), heard);
  EXPECT_EQ(text_of(third.failed(std::make_exception_ptr(JoinAborted("another rank has given up joining")))), heard);
  fails.join();
}

TEST(JoinWatch, WhoseProcessHasEndedIsNamedToAll) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  const auto store = memory_store();
  const std::string note = fmt::format("{} here", child);
  store->set("process/1", std::as_bytes(std::span(note)));
  JoinWatch first(store, 0, 3, "here"), third(store, 2, 3, "here");
  const std::string ended = "lost 1: rank 1's process has ended while the ranks joined";
  const std::exception_ptr why = waiting(first, 60s);
  EXPECT_EQ(text_of(why), ended);
  EXPECT_EQ(text_of(first.failed(why)), ended);
  EXPECT_EQ(text_of(waiting(third, 60s)), ended + ", as rank 0 found");
}

TEST(JoinWatch, WhoIsOnAnotherHostIsNotLookedFor) {
  const auto store = memory_store();
  const std::string note = "999999999 there";
  store->set("process/1", std::as_bytes(std::span(note)));
  JoinWatch first(store, 0, 2, "here");
  EXPECT_NE(text_of(waiting(first, 300ms)).find("nobody has set 'never'"), std::string::npos);
}

TEST(JoinWatch, AllWhoHaveNotComeAreNamedAndNoNote) {
  const auto store = memory_store();
  JoinWatch first(store, 0, 4, "here"), third(store, 2, 4, "here");
  const std::string missing = "lost 1: ranks 1, 3 did not join in time";
  EXPECT_EQ(text_of(first.failed(waiting(first, 1ms))), missing);
  EXPECT_EQ(first.absent(), (std::vector<Rank>{1, 3}));
  EXPECT_EQ(text_of(third.failed(waiting(third, 1ms))), missing + ", as rank 0 found");
}

// Rank 0 gave up: the file descriptor that it announced is closed, or its number has been reused for another file.
TEST(JoinWatch, WhoComesAfterRankZeroHasGivenUpIsDropped) {
  const auto store = memory_store();
  const auto device = device::host_of_process();
  const auto join = [&](Rank rank) {
    return open_transport(store, {.rank = rank,
                                  .ranks = 2,
                                  .config = {.transport = "shared_memory"},
                                  .device = device.get(),
                                  .deadline = Clock::now() + 50ms});
  };
  EXPECT_THROW(join(0), PeerLost);
  EXPECT_THROW(join(1), JoinAborted);
  std::vector<net::Descriptor> others(64);
  for (net::Descriptor& one : others) one = net::Descriptor(memfd_create("another", MFD_CLOEXEC));
  EXPECT_THROW(join(1), JoinAborted);
}

TEST(JoinWatch, ACallersMistakeIsTheirOwn) {
  const auto store = memory_store();
  JoinWatch first(store, 0, 2, "here"), second(store, 1, 2, "here");
  EXPECT_EQ(text_of(first.failed(std::make_exception_ptr(std::invalid_argument("no such rail")))), "no such rail");
  EXPECT_NO_THROW(second.check());
}

}  // namespace
}  // namespace trellis::ccl
