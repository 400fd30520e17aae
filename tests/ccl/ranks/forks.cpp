// A process that a rank forks: it cannot take its parent's place, and does not disturb it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "ccl/api/trellis.h"
#include "ccl/group.h"
#include "ccl/rendezvous/tcp/server.h"
#include "device/fork_mark.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;

void expect(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}

// Does the work in a forked process, and waits for its end. Returns its error; empty: it went well. Sets `forked` to 1
// once the child exists.
std::string in_child(const std::function<void()>& work, std::atomic<int>* forked = nullptr) {
  std::array<int, 2> ends;
  expect(pipe(ends.data()) == 0, "no pipe");
  const pid_t child = fork();
  if (child != 0 && forked != nullptr) *forked = 1;
  if (child == 0) {
    alarm(120);
    std::string said;
    try {
      work();
    } catch (const std::exception& e) {
      said = e.what();
    }
    const bool told = write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(said.empty() && told ? 0 : 1);
  }
  close(ends[1]);
  std::array<char, 1000> text;
  const ssize_t got = read(ends[0], text.data(), text.size());
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (got > 0) return {text.data(), static_cast<std::size_t>(got)};
  return status == 0 ? "" : "the child ended with status " + std::to_string(status);
}

// Ranks 0 and 1 may be threads of one process. A sanitizer's allocator is not prepared for a fork while another thread
// allocates: the child would wait for a lock for ever. So rank 1 stands still while rank 0 forks.
struct StillWhileForking {
  std::atomic<int>&still = seen_by_all(), &forked = seen_by_all();

  std::string in_child_of(const Communicator& c, const std::function<void()>& work) const {
    if (c.rank() != 0) {
      still = 1;
      await(forked, 1);
      return "";
    }
    await(still, 1);
    return in_child(work, &forked);
  }
};

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const device::Forked& e) {
    return e.what();
  }
  throw std::runtime_error("a call of a forked process was done");
}

void expect_refused(const std::function<void()>& call) {
  const std::string why = refusal(call);
  expect(why.find("was forked from the one that made the communicator") != std::string::npos, why);
}

float sum_over(Communicator& c) {
  auto mine = static_cast<float>(c.rank() + 1);
  c.all_reduce(&mine, &mine, 1, DType::f32);
  return mine;
}

class Forks : public testing::TestWithParam<std::string> {
 protected:
  // Lets a child of rank 0 do the work between sums of the ranks, which must stay right.
  static std::string beside(const std::function<void(Communicator&)>& work) {
    const StillWhileForking forking;
    return run_ranks(GetParam(), 2,
                     [&](Communicator& c) {
                       expect(sum_over(c) == 3, "a wrong sum before the fork");
                       const std::string said = forking.in_child_of(c, [&] { work(c); });
                       if (!said.empty()) throw std::runtime_error("the child: " + said);
                       for (int i = 0; i < 3; ++i) expect(sum_over(c) == 3, "a wrong sum after the fork");
                       c.finalize();
                     },
                     {.timeout = 60s});
  }
};

TEST_P(Forks, NoCallTakesTheParentsPlace) {
  EXPECT_EQ(beside([](Communicator& c) {
              std::vector<float> data(1000, 100.0F);
              expect_refused([&] { sum_over(c); });
              expect_refused([&] { c.broadcast(data.data(), data.data(), data.size(), DType::f32, 0); });
              expect_refused([&] { c.send(data.data(), data.size(), DType::f32, 1); });
              expect_refused([&] { c.recv(data.data(), data.size(), DType::f32, 1); });
              expect_refused([&] { c.barrier(); });
              expect_refused([&] { c.split(0, 0); });
              expect_refused([&] { c.shrink({}); });
              expect_refused([&] { c.expose(data.data(), data.size()); });
              expect_refused([&] { c.finalize(); });
              expect_refused([&] { c.abort(); });
              expect(c.rank() == 0 && c.ranks() == 2 && !c.error(), "what it was is not known");
            }),
            "");
}

TEST_P(Forks, ToDestroyACommunicatorTellsNobody) {
  EXPECT_EQ(beside([](Communicator& c) { std::destroy_at(&c); }), "");
}

TEST_P(Forks, AChildsChildIsNoRankEither) {
  EXPECT_EQ(beside([](Communicator& c) {
              const std::string said = in_child([&] { expect_refused([&] { sum_over(c); }); });
              expect(said.empty(), said);
              expect_refused([&] { sum_over(c); });
            }),
            "");
}

TEST_P(Forks, AnOpenGroupStaysTheParents) {
  const StillWhileForking forking;
  EXPECT_EQ(run_ranks(GetParam(), 2,
                      [&](Communicator& c) {
                        auto mine = static_cast<float>(c.rank() + 1);
                        Group group;
                        c.all_reduce(&mine, &mine, 1, DType::f32);
                        const std::string said = forking.in_child_of(c, [&] { expect_refused([&] { group.end(); }); });
                        expect(said.empty(), said);
                        group.end();
                        expect(mine == 3, "a wrong sum");
                      },
                      {.timeout = 60s}),
            "");
}

TEST_P(Forks, AChildMakesCommunicatorsOfItsOwn) {
  EXPECT_EQ(beside([](Communicator&) {
              const auto own = Communicator::create(memory_store(), 0, 1, {.timeout = 20s});
              expect(sum_over(*own) == 1, "a wrong sum in the child");
            }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Transports, Forks, every_transport());

TEST(ForkedStream, HasNoThreadAndEndsWithoutOne) {
  auto stream = device::host_of_process()->stream();
  stream->submit([] {});
  stream->synchronize();
  EXPECT_EQ(in_child([&] {
              expect(refusal([&] { stream->submit([] {}); }).find("made the stream") != std::string::npos, "no reason");
              refusal([&] { stream->synchronize(); });
              stream.reset();
            }),
            "");
  bool done = false;
  stream->submit([&] { done = true; });
  stream->synchronize();
  EXPECT_TRUE(done);
}

TEST(ForkedStore, AFolderIsStillTheParents) {
  const std::string folder = testing::TempDir() + "forked_store_" + std::to_string(getpid());
  {
    auto store = file_store(folder);
    store->set("a", std::as_bytes(std::span("1", 1)));
    EXPECT_EQ(in_child([&] { store.reset(); }), "");
    EXPECT_EQ(text_of(store->get("a", Clock::now() + 5s)), "1");
  }
  EXPECT_FALSE(std::filesystem::exists(folder + "/in_use"));
  std::filesystem::remove_all(folder);
}

TEST(ForkedStore, BothProcessesGoOnWithAServer) {
  auto server = tcp_store_server({.address = "127.0.0.1", .secret = "s"});
  const auto store = tcp_store("127.0.0.1", server->port(), "s", Clock::now() + 20s);
  EXPECT_EQ(store->add("a", 1), 1);
  EXPECT_EQ(in_child([&] {
              expect(store->add("a", 1) == 2 && store->add("a", 1) == 3, "a wrong sum in the child");
              server.reset();
            }),
            "");
  EXPECT_EQ(store->add("a", 1), 4);
}

TEST(ForkedHandles, AreTheParents) {
  trellis_comm comm = nullptr;
  ASSERT_EQ(trellis_comm_create_all(&comm, 1, nullptr), TRELLIS_OK) << trellis_last_error();
  trellis_stream stream = nullptr;
  ASSERT_EQ(trellis_stream_create(&stream), TRELLIS_OK);
  EXPECT_EQ(in_child([&] {
              trellis_comm own = nullptr;  // takes the first slot of the child's handle table
              expect(trellis_comm_create_all(&own, 1, nullptr) == TRELLIS_OK, trellis_last_error());
              expect(own != comm, "the child's communicator has the parent's handle");
              const auto refused = [&](trellis_result result) {
                const std::string why = trellis_last_error();
                expect(result == TRELLIS_INVALID_ARGUMENT && why.find("forked") != std::string::npos, why);
              };
              float one = 1;
              refused(trellis_all_reduce(comm, &one, &one, 1, TRELLIS_F32, TRELLIS_SUM, nullptr));
              refused(trellis_barrier(own, stream));
              refused(trellis_comm_abort(comm));
              refused(trellis_comm_destroy(comm));
              refused(trellis_stream_destroy(stream));
              expect(trellis_barrier(own, nullptr) == TRELLIS_OK, trellis_last_error());
              expect(trellis_comm_destroy(own) == TRELLIS_OK, trellis_last_error());
            }),
            "");
  EXPECT_EQ(trellis_barrier(comm, stream), TRELLIS_OK) << trellis_last_error();
  EXPECT_EQ(trellis_stream_destroy(stream), TRELLIS_OK);
  EXPECT_EQ(trellis_comm_destroy(comm), TRELLIS_OK);
}

}  // namespace
}  // namespace trellis::ccl
