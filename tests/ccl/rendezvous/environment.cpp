// How ranks that another program has started find each other.
#include "ccl/rendezvous/environment.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "ccl/rendezvous/tcp/greeting.h"
#include "ccl/rendezvous/tcp/server.h"
#include "net/sha256.h"
#include "net/socket.h"
#include "tests/ccl/rendezvous/relay.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

int free_port() {
  const net::Descriptor socket = net::listen_at("127.0.0.1", 0);
  return net::local_address(socket).port();
}

LaunchedProcess rank_of(int rank, int ranks, int port) {
  return {.rank = rank, .ranks = ranks, .local_rank = rank, .local_ranks = ranks, .address = "127.0.0.1", .port = port};
}

// Starts each rank in a process of its own, where it waits until all have met.
std::vector<pid_t> start(const std::vector<LaunchedProcess>& ranks) {
  std::vector<pid_t> children;
  for (const LaunchedProcess& l : ranks) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    int status = 1;
    try {
      const auto store = store_from_environment(l, Clock::now() + 60s);
      store->set("here " + std::to_string(l.rank), {});
      for (int r = 0; r < l.ranks; ++r) store->get("here " + std::to_string(r), Clock::now() + 60s);
      // Rank 0's process keeps the store: it ends last.
      store->add("left", 1);
      while (l.rank == 0 && store->add("left", 0) < l.ranks) std::this_thread::sleep_for(1ms);
      status = 0;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "rank %d: %s\n", l.rank, e.what());
    }
    _exit(status);
  }
  return children;
}

void expect_good_ends(const std::vector<pid_t>& children) {
  for (const pid_t child : children) {
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

void meet(const std::vector<LaunchedProcess>& ranks) { expect_good_ends(start(ranks)); }

std::vector<LaunchedProcess> job(int ranks, int port, const std::string& secret = "") {
  std::vector<LaunchedProcess> all;
  for (int r = 0; r < ranks; ++r) {
    all.push_back(rank_of(r, ranks, port));
    all.back().secret = secret;
  }
  return all;
}

TEST(StoreFromEnvironment, RanksMeetAtTheAddress) { meet(job(4, free_port(), net::fresh_secret())); }

TEST(StoreFromEnvironment, WithoutASecretToo) { meet(job(3, free_port())); }

TEST(StoreFromEnvironment, APortThatAnotherProgramHasIsPassedOver) {
  const net::Descriptor silent = net::listen_at("127.0.0.1", 0);
  meet(job(3, net::local_address(silent).port()));
}

TEST(StoreFromEnvironment, TwoJobsSideBySideKeepApart) {
  const int port = free_port();
  const std::vector<pid_t> first = start(job(2, port, "first")), second = start(job(2, port, "second"));
  expect_good_ends(first);
  expect_good_ends(second);
}

TEST(StoreFromEnvironment, OneRankAloneNeedsNobody) {
  const auto store = store_from_environment(LaunchedProcess{}, Clock::now());
  EXPECT_EQ(store->add("n", 1), 1);
}

TEST(StoreFromEnvironment, ASecondCallFindsTheSameStore) {
  const LaunchedProcess l = rank_of(0, 2, free_port());
  EXPECT_EQ(store_from_environment(l, Clock::now() + 60s)->add("n", 1), 1);
  EXPECT_EQ(store_from_environment(l, Clock::now() + 60s)->add("n", 1), 2);
}

TEST(StoreFromEnvironment, AnotherProcessWithTheSameSecretAtTheAddressIsRefused) {
  LaunchedProcess l = rank_of(0, 2, 0);
  const auto server = tcp_store_server({.address = "127.0.0.1", .secret = "same"});
  tcp_store("127.0.0.1", server->port(), "same", Clock::now() + 60s)
      ->set("trellis/keeper", net::bytes_of("not this one"));
  l.port = server->port();
  l.secret = "same";
  EXPECT_THROW(store_from_environment(l, Clock::now() + 60s), std::system_error);
}

TEST(StoreFromEnvironment, ARankThatWasToldTooLittleSaysSo) {
  LaunchedProcess l = rank_of(1, 2, 0);
  l.address = "";
  l.by = "mpiexec";
  try {
    store_from_environment(l, Clock::now() + 60s);
    FAIL() << "found a store without an address";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("MASTER_ADDR"), std::string::npos) << error.what();
  }
}

TEST(StoreFromEnvironment, AMissingRankZeroIsSaidByTheDeadline) {
  const Deadline began = Clock::now();
  EXPECT_THROW(store_from_environment(rank_of(1, 2, free_port()), began + 200ms), TimedOut);
  EXPECT_LT(Clock::now() - began, 30s);
}

TEST(StoreFromEnvironment, AnotherSecretAtTheAddressIsSaid) {
  const auto server = tcp_store_server({.address = "127.0.0.1", .secret = "one"});
  LaunchedProcess l = rank_of(1, 2, server->port());
  l.secret = "another";
  try {
    store_from_environment(l, Clock::now() + 6s);
    FAIL() << "joined with another secret";
  } catch (const TimedOut& error) {
    const std::string found = "127.0.0.1:" + std::to_string(server->port()) + ": a store with another secret";
    EXPECT_NE(std::string(error.what()).find(found), std::string::npos) << error.what();
  }
}

// A relay listens at the job's address, and passes bytes on to rank 0's store, which had to take the next port. Ranks
// notice that: the relay carries no more than their hellos.
TEST(StoreFromEnvironment, ARelayAtTheAddressIsPassedOver) {
  net::Descriptor listener = net::listen_at("127.0.0.1", 0);
  const int port = net::local_address(listener).port();
  // The ranks are forked before the relay has its thread: a process that is forked while another thread allocates can
  // find the address sanitizer's allocator locked for ever.
  const std::vector<pid_t> ranks = start(job(3, port, "secret"));
  const Relay relay(std::move(listener), [=] { return port + 1; });
  expect_good_ends(ranks);
  EXPECT_GT(relay.calls(), 0);
  EXPECT_LE(relay.carried(), static_cast<std::size_t>(relay.calls()) * (store_greeting.hello_bytes() + 1));
}

// The test that mpirun runs in each of the processes that it starts below.
TEST(StoreFromPmix, DISABLED_RankOfMpirun) {
  const LaunchedProcess l = launched_from_environment();
  ASSERT_EQ(l.by, "mpirun");
  ASSERT_EQ(l.ranks, 4);
  for (int again = 0; again < 2; ++again) {
    const auto store = store_from_environment(l, Clock::now() + 60s);
    const std::string prefix = std::to_string(again) + "/";
    store->set(prefix + std::to_string(l.rank), {});
    for (int r = 0; r < l.ranks; ++r) store->get(prefix + std::to_string(r), Clock::now() + 60s);
    store->add(prefix + "left", 1);
    while (l.rank == 0 && store->add(prefix + "left", 0) < l.ranks) std::this_thread::sleep_for(1ms);
  }
  std::printf("rank %d met\n", l.rank);
}

TEST(StoreFromPmix, RanksOfMpirunMeet) {
  if (std::system("mpirun --version 2>&1 | grep -q 'Open MPI'") != 0)
    GTEST_SKIP() << "no mpirun of Open MPI: Debian's package openmpi-bin has it";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  // The leak checker would report what libpmix keeps.
  const std::string command =
      "unset GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX; ASAN_OPTIONS=detect_leaks=0 timeout 100 mpirun --oversubscribe "
      "--allow-run-as-root -n 4 '" +
      self +
      "' --gtest_also_run_disabled_tests --gtest_filter=StoreFromPmix.DISABLED_RankOfMpirun "
      "2>&1";
  FILE* output = popen(command.c_str(), "r");
  ASSERT_NE(output, nullptr);
  std::string said;
  for (int c = 0; (c = std::fgetc(output)) != EOF;) said += static_cast<char>(c);
  const int status = pclose(output);
  if (said.find("this build has no PMIx") != std::string::npos)
    GTEST_SKIP() << "built without PMIx: Debian's package libpmix-dev has its headers";
  EXPECT_EQ(status, 0) << said;
  for (int r = 0; r < 4; ++r) EXPECT_NE(said.find("rank " + std::to_string(r) + " met"), std::string::npos) << said;
}

}  // namespace
}  // namespace trellis::ccl
