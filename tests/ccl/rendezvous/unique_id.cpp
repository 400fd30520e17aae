#include "ccl/rendezvous/unique_id.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <thread>

#include "ccl/rendezvous/bounded_map.h"
#include "tests/why.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

std::string complaint(const UniqueId& id) {
  return why([&] { store_for(id, Clock::now() + 5s); });
}

int trouble(const UniqueId& id) {
  try {
    store_for(id, Clock::now() + 5s);
  } catch (const std::system_error& error) {
    return error.code().value();
  }
  return 0;
}

TEST(UniqueIds, RanksFindOneStore) {
  const UniqueId id = make_unique_id();
  std::vector<std::thread> ranks;
  for (int r = 0; r < 4; ++r)
    ranks.emplace_back([&] {
      const auto store = store_for(id, Clock::now() + 60s);
      store->add("here", 1);
      store->set("done " + std::to_string(store->add("ticket", 1)), {});
      for (int i = 1; i <= 4; ++i) store->get("done " + std::to_string(i), Clock::now() + 60s);
    });
  for (std::thread& t : ranks) t.join();
  EXPECT_EQ(store_for(id, Clock::now() + 60s)->add("here", 0), 4);
}

TEST(UniqueIds, EachHasAStoreOfItsOwn) {
  const UniqueId a = make_unique_id(), b = make_unique_id();
  EXPECT_FALSE(a == b);
  EXPECT_EQ(store_for(a, Clock::now() + 60s)->add("n", 1), 1);
  EXPECT_EQ(store_for(b, Clock::now() + 60s)->add("n", 1), 1);
}

TEST(UniqueIds, OnlyAddressesOfTheChosenInterfacesAreTold) {
  const auto addresses = [](const char* interfaces) {
    setenv("NCCL_SOCKET_IFNAME", interfaces, 1);
    const UniqueId id = make_unique_id();
    unsetenv("NCCL_SOCKET_IFNAME");
    return std::to_integer<int>(id.bytes[4]);
  };
  EXPECT_EQ(addresses("=no-such"), 0);
  EXPECT_EQ(addresses("^=no-such"), addresses(""));
}

TEST(UniqueIds, EveryDamagedByteIsNoticed) {
  const UniqueId id = make_unique_id();
  for (std::size_t i = 0; i < id.bytes.size(); ++i)
    for (unsigned bit : {1U, 128U}) {
      UniqueId damaged = id;
      damaged.bytes[i] ^= static_cast<std::byte>(bit);
      const std::string said = complaint(damaged);
      EXPECT_NE(said.find(i < 4 ? "not a unique id" : "damaged"), std::string::npos) << i << ": " << said;
    }
  EXPECT_NE(complaint(UniqueId{}).find("128 zeros"), std::string::npos);
}

TEST(UniqueIds, AmongProcesses) {
  const UniqueId id = make_unique_id();
  const pid_t child = fork();
  if (child == 0) {
    try {
      store_for(id, Clock::now() + 60s)->set("child", {});
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  store_for(id, Clock::now() + 60s)->get("child", Clock::now() + 60s);
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// The process of the id has ended: the others get an error within the deadline.
TEST(UniqueIds, AnIdWhoseProcessHasEndedFindsNobody) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const UniqueId id = make_unique_id();
    _exit(write(pipe_ends[1], id.bytes.data(), id.bytes.size()) == static_cast<ssize_t>(id.bytes.size()) ? 0 : 1);
  }
  UniqueId id;
  ASSERT_EQ(read(pipe_ends[0], id.bytes.data(), id.bytes.size()), static_cast<ssize_t>(id.bytes.size()));
  waitpid(child, nullptr, 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  const Deadline began = Clock::now();
  EXPECT_EQ(trouble(id), ECONNREFUSED);
  EXPECT_LT(Clock::now() - began, 30s);
}

// A rank that comes after the last one has left gets an error at once, before its deadline.
TEST(UniqueIds, AnIdThatHasServedIsOver) {
  const UniqueId id = make_unique_id(), other = make_unique_id();
  {
    const auto one = store_for(id, Clock::now() + 60s), two = store_for(id, Clock::now() + 60s);
    one->set("note", {});
    one->leave("", 2);
    EXPECT_NO_THROW(two->get("note", Clock::now() + 60s));
    two->leave("", 2);
  }
  // The server, a thread of this process, may hear of closed connections a moment later.
  const Deadline heard = Clock::now() + 30s;
  int error = trouble(id);
  while (error == 0 && Clock::now() < heard) error = trouble(id);
  EXPECT_EQ(error, ECONNREFUSED);
  EXPECT_EQ(store_for(other, Clock::now() + 60s)->add("n", 1), 1) << "an id that nobody has come to yet waits";
}

}  // namespace
}  // namespace trellis::ccl
