// Processes that may have few descriptors: the soft limit is raised where that helps, else the error names it.
#include "ccl/descriptor_limit.h"
#include "net/descriptor.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "ccl/communicator.h"
#include "ccl/rendezvous/tcp/server.h"
#include "ccl/rendezvous/tcp/store_client.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

void limit_to(rlim_t soft, rlim_t hard) {
  const rlimit limit = {soft, hard};
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::size_t next_descriptor() {
  const int fd = dup(STDERR_FILENO);
  close(fd);
  return static_cast<std::size_t>(fd);
}

TEST(DescriptorLimit, IsRaisedForALargeCommunicatorAlone) {
  EXPECT_EXIT(
      {
        limit_to(200, 1000);
        allow_descriptors(4);
        const bool kept = net::descriptor_limit() == 200;
        allow_descriptors(100);
        _exit(kept && net::descriptor_limit() == 1000 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// Clients share the descriptors of the server's process. One that takes the last descriptor waits until the server
// wants to accept it, finds none left, and raises the limit; one that gets none tries again.
std::shared_ptr<Store> client_of(const TcpStoreServer& server) {
  const Deadline deadline = Clock::now() + 60s;
  for (;;) {
    try {
      return tcp_store("127.0.0.1", server.port(), "s", deadline);
    } catch (const std::system_error& lacking) {
      if (lacking.code().value() != EMFILE || Clock::now() > deadline) throw;
      std::this_thread::sleep_for(1ms);
    }
  }
}

TEST(DescriptorLimit, IsRaisedByAStoreWithManyClients) {
  for (const rlim_t descriptors : {20, 21})  // the last one is taken by a client, or by the server
    EXPECT_EXIT(
        {
          limit_to(next_descriptor() + descriptors, 500);
          const auto server = tcp_store_server({.address = "127.0.0.1", .secret = "s"});
          std::vector<std::shared_ptr<Store>> clients;
          while (clients.size() < 60) clients.push_back(client_of(*server));
          _exit(net::descriptor_limit() == 500 ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

// The error of a process that has no descriptor left and may not raise its limit.
TEST(DescriptorLimit, IsNamedWhereItIsTooLow) {
  EXPECT_EXIT(
      {
        limit_to(next_descriptor() + 8, next_descriptor() + 8);
        while (dup(STDERR_FILENO) >= 0) {
        }
        try {
          Communicator::create(memory_store(), 0, 2, {.timeout = 1s, .transport = "shared_memory"});
        } catch (const std::exception& e) {
          fprintf(stderr, "%s\n", e.what());
        }
        _exit(0);
      },
      testing::ExitedWithCode(0), "rank 0 of 2 may have [0-9]+ descriptors.*expected room for 70 more .ulimit -n");
}

// Fills a store with clients, and exits with the number of times that the store reported its limit. Clients are in the
// server's process: with an even number of descriptors the server's accept finds none left, with an odd one a client's
// socket does. Then the client gets the descriptor that was kept back, and the server's accept finds none.
void fill_a_store(rlim_t descriptors) {
  limit_to(next_descriptor() + descriptors, next_descriptor() + descriptors);
  net::Descriptor kept_back(dup(STDERR_FILENO));
  std::atomic<int> told = 0;
  const auto server =
      tcp_store_server({.address = "127.0.0.1", .secret = "s", .on_refusal = [&](const std::string& why) {
                          fprintf(stderr, "%s\n", why.c_str());
                          if (why.starts_with("a connection besides")) ++told;
                        }});
  std::vector<std::shared_ptr<Store>> clients;
  for (;;) {
    try {
      clients.push_back(tcp_store("127.0.0.1", server->port(), "s", Clock::now() + 6s));
    } catch (const std::exception&) {
      if (!kept_back) _exit(told);
      kept_back = {};
    }
  }
}

TEST(DescriptorLimit, OfAFullStoreIsToldOnce) {
  for (const rlim_t descriptors : {30, 31})
    EXPECT_EXIT(fill_a_store(descriptors), testing::ExitedWithCode(1),
                "a connection besides [0-9]+ others: this process may have [0-9]+ descriptors");
}

}  // namespace
}  // namespace trellis::ccl
