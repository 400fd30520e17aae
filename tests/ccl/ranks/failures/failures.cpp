// Ranks that die, freeze, leave, or make different calls: the others know by the deadline, and can go on.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "ccl/transports/process_handle.h"
#include "tests/ccl/ranks/run.h"
#include "tests/why.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;

const Config by_the_deadline = {.timeout = long_deadline};

void expect(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}

// Repeats an all_reduce until it fails, and returns its error.
template <class Error>
Error failure_of(Communicator& c) {
  std::vector<float> data(5'000, 1.0F);
  try {
    for (int i = 0; i < 1'000'000; ++i) c.all_reduce(data.data(), data.data(), data.size(), DType::f32);
  } catch (const Error& e) {
    return e;
  }
  throw std::runtime_error("nothing failed");
}

TEST(Failures, AKilledRankIsNamedAtOnceAndTheOthersGoOn) {
  for (Rank victim : {0, 2}) {
    const std::string said =
        run_processes(4,
                      [&](Communicator& c) {
                        if (c.rank() == victim) {
                          std::thread([] {
                            std::this_thread::sleep_for(100ms);
                            kill(getpid(), SIGKILL);
                          }).detach();
                          failure_of<PeerLost>(c);
                        }
                        const PeerLost lost = failure_of<PeerLost>(c);
                        expect(lost.rank == victim, fmt::format("rank {} was named: {}", lost.rank, lost.what()));
                        const auto left = c.shrink(std::array{victim});
                        std::int32_t one = 1;
                        left->all_reduce(&one, &one, 1, DType::i32);
                        expect(left->ranks() == 3 && one == 3, "the survivors' sum");
                      },
                      {.timeout = 20s});
    EXPECT_EQ(said, fmt::format("rank {}: signal 9\n", victim));
  }
}

TEST(Failures, AFrozenRankIsNamedByTheDeadline) {
  const std::string said = run_processes(
      3,
      [&](Communicator& c) {
        if (c.rank() == 1) {
          std::thread([] {
            std::this_thread::sleep_for(100ms);
            kill(getpid(), SIGSTOP);
          }).detach();
          failure_of<PeerLost>(c);
        }
        const PeerLost lost = failure_of<PeerLost>(c);
        const auto left = c.shrink(std::array{1});
        left->barrier();
        expect(lost.rank == 1, fmt::format("rank {} was named: {}", lost.rank, lost.what()));
      },
      by_the_deadline);
  EXPECT_EQ(said, "rank 1: signal 9\n");
}

// The kernel closes a dying process's files a while before it reports the process's end. The same happens here, where
// the main thread has ended and another one still runs.
TEST(Failures, ARankWhoseFilesAreClosedBeforeItHasEndedDied) {
  const std::string said =
      run_processes(3,
                    [&](Communicator& c) {
                      constexpr std::size_t elements = 1 << 16;
                      auto* const out = static_cast<float*>(c.device().allocate(4 * elements * sizeof(float)));
                      const auto gather = [&c, out] { c.all_gather(out + 3 * elements, out, elements, DType::f32); };
                      if (c.rank() == 2) {
                        std::thread([gather] {
                          while (!main_thread_ends(getpid())) std::this_thread::sleep_for(1ms);
                          gather();
                        }).detach();
                        std::thread([] {
                          std::this_thread::sleep_for(500ms);
                          kill(getpid(), SIGKILL);
                        }).detach();
                        syscall(SYS_exit, 0);
                      }
                      try {
                        gather();
                      } catch (const PeerLost& lost) {
                        return expect(lost.rank == 2, fmt::format("rank {} was named: {}", lost.rank, lost.what()));
                      }
                      throw std::runtime_error("nothing failed");
                    },
                    {.timeout = 20s, .algorithm = "all_gather=direct"});
  EXPECT_EQ(said, "rank 2: signal 9\n");
}

TEST(Failures, ARankThatNeverCallsIsNamed) {
  const std::string said = over_each_transport([](const std::string& transport) {
    std::atomic<int>& named = seen_by_all();
    return run_ranks(
        transport, 4,
        [&](Communicator& c) {
          if (c.rank() == 3) {
            return await(named, 3);
          }
          float x = 0;
          try {
            c.all_reduce(&x, &x, 1, DType::f32);
          } catch (const PeerLost& lost) {
            ++named;
            expect(lost.rank == 3, fmt::format("rank {} was named: {}", lost.rank, lost.what()));
            return;
          }
          ++named;
          throw std::runtime_error("nothing failed");
        },
        by_the_deadline);
  });
  EXPECT_EQ(said, "");
}

TEST(Failures, DifferentCallsAreNamed) {
  struct Difference {
    std::function<void(Communicator&, float*)> first, second;
    const char* words;
  };
  const Difference differences[] = {
      {[](Communicator& c, float* x) { c.all_reduce(x, x, 4, DType::f32); },
       [](Communicator& c, float* x) { c.all_reduce(x, x, 5, DType::f32); }, "all_reduce of 5 f32"},
      {[](Communicator& c, float* x) { c.all_reduce(x, x, 4, DType::f32); },
       [](Communicator& c, float* x) { c.all_reduce(x, x, 4, DType::i32); }, "all_reduce of 4 i32"},
      {[](Communicator& c, float* x) { c.all_reduce(x, x, 4, DType::f32); },
       [](Communicator& c, float* x) { c.all_reduce(x, x, 4, DType::f32, {kernels::Reduction::max}); }, "max"},
      {[](Communicator& c, float* x) { c.broadcast(x, x, 4, DType::f32, 0); },
       [](Communicator& c, float* x) { c.broadcast(x, x, 4, DType::f32, 1); }, "broadcast of 4 f32, root 1"},
      {[](Communicator& c, float* x) { c.all_reduce(x, x, 4, DType::f32); },
       [](Communicator& c, float* x) { c.all_gather(x + c.rank(), x, 1, DType::f32); }, "all_gather of 1 f32"},
  };
  for (const Difference& d : differences)
    for (const std::string& transport : usable_transports()) {
      std::atomic<int>& named = seen_by_all();
      named = 0;
      const std::string said = run_ranks(transport, 2,
                                         [&](Communicator& c) {
                                           float x[8] = {};
                                           try {
                                             (c.rank() == 0 ? d.first : d.second)(c, x);
                                             c.barrier();
                                           } catch (const Mismatch& m) {
                                             ++named;
                                             await(named, 2);
                                             if (c.rank() == 0) throw;
                                           }
                                         },
                                         {.timeout = 30s});
      EXPECT_NE(said.find(d.words), std::string::npos) << transport << ": " << said;
    }
}

// Neither rank waits for the other. Both take themselves for the root, which is done as soon as it has sent; or one
// sends and is done, and the other does not receive.
TEST(Failures, WhatNobodyCouldSeeIsSeenAtTheEnd) {
  for (const std::string& transport : usable_transports()) {
    std::atomic<int>& through = seen_by_all();
    const auto ends_as = [&](const std::function<void(Communicator&, float*)>& call) {
      through = 0;
      return run_ranks(transport, 2, [&](Communicator& c) {
        float x[8] = {};
        try {
          call(c, x);
        } catch (...) {
          ++through;
          throw;
        }
        ++through;
        await(through, 2);
        c.finalize();
      });
    };
    const std::string roots = ends_as([](Communicator& c, float* x) { c.broadcast(x, x, 4, DType::f32, c.rank()); });
    for (const char* words : {"rank 0: rank ", "rank 1: rank ", "operation 1, broadcast of 4 f32, root 1",
                              "operation 1, broadcast of 4 f32, root 0"})
      EXPECT_NE(roots.find(words), std::string::npos) << transport << ": " << roots;
    const std::string sent = ends_as([](Communicator& c, float* x) {
      if (c.rank() == 0) c.send(x, 4, DType::f32, 1);
    });
    EXPECT_NE(sent.find("rank 0 sent something that rank 1 never received"), std::string::npos) << transport << sent;
    EXPECT_EQ(ends_as([](Communicator& c, float* x) { c.all_reduce(x, x, 4, DType::f32); }), "") << transport;
  }
}

TEST(Failures, RanksThatWaitForEachOtherInACircleAreTold) {
  const std::string said = run_ranks("shared_memory", 3,
                                     [](Communicator& c) {
                                       std::vector<float> x(1'000'000);
                                       c.send(x.data(), x.size(), DType::f32, (c.rank() + 1) % 3);
                                       c.recv(x.data(), x.size(), DType::f32, (c.rank() + 2) % 3);
                                     },
                                     {.timeout = long_deadline, .single_copy = false});
  EXPECT_NE(said.find(" wait for each other in a circle"), std::string::npos) << said;
}

TEST(Failures, RanksOfWhichOneIsElsewhereWhenOthersDivideAreTold) {
  const std::string said = run_ranks(
      "shared_memory", 3,
      [](Communicator& c) {
        float x = 0;
        if (c.rank() == 1) c.all_reduce(&x, &x, 1, DType::f32);
        c.split(0, 0);
      },
      by_the_deadline);
  EXPECT_NE(said.find("called a split after operation 0 where rank 1 called operation 1, all_reduce of 1 f32, sum"),
            std::string::npos)
      << said;
  EXPECT_NE(
      said.find("rank 2: rank 0 called a split after operation 0 where rank 1 called operation 1, all_reduce of 1 "
                "f32, sum, as rank 1 found"),
      std::string::npos)
      << said;
}

// The error tells whether a rank closed its communicator or its process ended.
TEST(Failures, WhetherARankLeftOrItsProcessEndedIsSaid) {
  for (const bool in_order : {true, false}) {
    auto& ended = seen_by_all();
    ended = 0;
    const std::string said = run_processes(2, [&](Communicator& c) {
      std::unique_ptr<Communicator> child = c.split(0, c.rank());
      if (c.rank() == 1) {
        if (in_order) child.reset();
        ended = 1;
        if (!in_order) kill(getpid(), SIGKILL);
        await(ended, 2);
        return;
      }
      await(ended, 1);
      try {
        child->barrier();
      } catch (const PeerLost&) {
        ended = 2;
        throw;
      }
    });
    EXPECT_NE(said.find(in_order ? "rank 1 has closed the communicator" : "rank 1 is gone: its process has ended"),
              std::string::npos)
        << said;
  }
}

TEST(Failures, AbortEndsWhatOthersWaitFor) {
  for (const std::string& transport : usable_transports()) {
    std::atomic<int>& aborted = seen_by_all();
    EXPECT_EQ(run_ranks(transport, 3,
                        [&](Communicator& c) {
                          std::thread from_aside;
                          if (c.rank() == 1)
                            from_aside = std::thread([&] {
                              std::this_thread::sleep_for(200ms);
                              c.abort();
                            });
                          float x = 0;
                          bool ended = false;
                          try {
                            if (c.rank() != 2)
                              c.all_reduce(&x, &x, 1, DType::f32);
                            else
                              await(aborted, 2);  // who leaves before the others know is named by them
                          } catch (const Aborted&) {
                            ended = true;
                            ++aborted;
                          }
                          if (from_aside.joinable()) from_aside.join();
                          expect(ended == (c.rank() != 2), "abort");
                          if (c.rank() == 2) return;
                          try {
                            c.barrier();
                          } catch (const Aborted&) {
                            expect(c.error() != nullptr, "the error is kept");
                            return;
                          }
                          throw std::runtime_error("an aborted communicator went on");
                        },
                        {.timeout = 30s}),
              "");
  }
}

// The late rank would read data from the others' own memory, which they freed when their operation failed.
TEST(Failures, WhoComesTooLateIsToldAndReadsNothing) {
  std::vector<std::pair<std::string, std::size_t>> cases;
  for (const std::string& transport : usable_transports())
    for (const std::size_t elements : {std::size_t{32'000}, std::size_t{65'536}, std::size_t{1'000'000}})
      if (!across_hosts(transport) || elements == 65'536)  // across hosts, all sizes are sent alike
        cases.emplace_back(transport, elements);
  const auto said = at_once(cases.size(), [&](std::size_t i) {
    const std::size_t elements = cases[i].second;
    auto& through = seen_by_all();
    return run_ranks(cases[i].first, 4,
                     [&](Communicator& c) {
                       auto child = c.split(0, c.rank());
                       std::vector<float> data(elements, c.rank() == 0 ? 1.0F : 0.0F);
                       const auto broadcast = [&] {
                         child->broadcast(data.data(), data.data(), elements, DType::f32, 0);
                       };
                       broadcast();
                       std::ranges::fill(data, c.rank() == 0 ? 2.0F : 0.0F);
                       if (c.rank() == 1) {
                         await(through, 3);
                         std::string wrong;
                         try {
                           broadcast();
                           if (std::ranges::count(data, 2.0F) != static_cast<std::ptrdiff_t>(elements))
                             wrong = "a wrong answer";
                         } catch (const PeerLost& lost) {
                           if (lost.rank != 1) wrong = fmt::format("rank {} was named: {}", lost.rank, lost.what());
                         }
                         ++through;
                         return expect(wrong.empty(), wrong);
                       }
                       try {
                         broadcast();  // may succeed on rank 0 if a slot holds all of it
                       } catch (const PeerLost& lost) {
                         expect(lost.rank == 1, fmt::format("rank {} was named: {}", lost.rank, lost.what()));
                       }
                       child.reset();
                       ++through;
                       await(through, 4);
                     },
                     {.timeout = long_deadline, .algorithm = "broadcast=direct", .single_copy = false});
  });
  for (std::size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(said[i], "") << cases[i].first << ", " << cases[i].second << " elements";
}

TEST(Failures, ARankThatWasToldOtherwiseIsNamed) {
  const auto store = memory_store();
  EXPECT_THROW(Communicator::create(store, 3, 3, {.transport = "loopback"}), std::invalid_argument);
  EXPECT_THROW(Communicator::create(store, -1, 3, {.transport = "loopback"}), std::invalid_argument);
  EXPECT_THROW(Communicator::create(store, 0, 0, {.transport = "loopback"}), std::invalid_argument);
  EXPECT_THROW(Communicator::create(store, 0, 1, {.transport = "carrier_pigeon"}), std::invalid_argument);
  EXPECT_THROW(Communicator::create(store, 0, 2, {.timeout = 100ms, .transport = "loopback"}), PeerLost);
}

TEST(Failures, BadCallsAreRefusedByName) {
  const auto c = Communicator::create(memory_store(), 0, 1, {.transport = "loopback"});
  float x[16] = {};
  const auto refusal = [&](const Call& call) { return why([&] { c->run(call); }); };
  EXPECT_EQ(refusal({.output = x, .count = 1}), "all_reduce: the input is null");
  EXPECT_EQ(refusal({.input = x, .count = 1}), "all_reduce: the output is null");
  EXPECT_EQ(
      refusal({.operation = {.collective = Collective::broadcast, .root = 1}, .input = x, .output = x, .count = 1}),
      "broadcast: root 1; expected 0 to 0");
  EXPECT_NE(refusal({.input = x, .output = x + 1, .count = 8}).find("overlap"), std::string::npos);
  EXPECT_NE(refusal({.input = x, .output = x, .count = SIZE_MAX / 4}).find("do not fit in memory"), std::string::npos);
  EXPECT_EQ(refusal({.operation = {.collective = Collective::all_gather_v}, .input = x, .output = x}),
            "all_gather_v: 0 counts; expected one for each of 1 ranks");
  EXPECT_EQ(refusal({.input = x, .output = x, .count = 1, .type = static_cast<DType>(99)}),
            "all_reduce: no type has number 99");
  EXPECT_EQ(refusal({.input = x, .output = x, .count = 8}), "");  // and it goes on
}

}  // namespace
}  // namespace trellis::ccl
