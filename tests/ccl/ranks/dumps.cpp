// The flight recorders' files: who writes them, and when.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <tuple>

#include "ccl/failure/dump_on_signal.h"
#include "ccl/failure/rank_dump.h"
#include "tests/ccl/ranks/run.h"
#include "tests/folder.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;

class Dumps : public testing::Test {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) found.push_back(entry.path().filename());
    return found;
  }
  std::size_t written() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(files(), [](const std::string& name) { return name.ends_with(".json"); }));
  }
  bool comes_to(std::size_t count) const {
    for (int i = 0; i < 12'000 && written() != count; ++i) std::this_thread::sleep_for(5ms);
    return written() == count;
  }
  std::string all() const {
    std::ostringstream text;
    for (const std::string& name : files()) text << std::ifstream(folder + "/" + name).rdbuf();
    return text.str();
  }
  std::vector<RankDump> all_dumps() const {
    std::vector<RankDump> found;
    for (const std::string& name : files()) {
      if (!name.ends_with(".json")) continue;  // it is being written
      std::ostringstream text;
      text << std::ifstream(folder + "/" + name).rdbuf();
      found.push_back(rank_dump_in(text.str()));
    }
    return found;
  }
  std::map<Rank, RankDump> dumps() const {
    std::map<Rank, RankDump> found;
    for (const RankDump& d : all_dumps()) found[d.rank] = d;
    return found;
  }
  RankDump only_dump() const {
    const std::vector<RankDump> found = all_dumps();
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? RankDump{} : found.front();
  }
  using Told = std::function<bool(const RankDump&)>;
  // Whether, before long, some dump satisfies `told`.
  bool comes_to_be_told(const Told& told) const {
    for (int i = 0; i < 12'000; ++i, std::this_thread::sleep_for(5ms))
      if (std::ranges::any_of(all_dumps(), told)) return true;
    return false;
  }
  static bool under_way(const RankDump& d) { return !d.entries.empty() && d.entries.back().under_way; }
  // Asks for dumps until this process's other thread has begun what it is about to do.
  void ask_until_something_is_under_way() const {
    for (int i = 0; i < 1'200 && !std::ranges::any_of(all_dumps(), under_way); ++i) {
      kill(getpid(), SIGUSR2);
      std::this_thread::sleep_for(50ms);
    }
  }
  // Waits until the process has ended: if this rank left before, the process's operation would fail, and be dumped as
  // well.
  static void stay_until_the_end_of(const std::atomic<int>& process) {
    for (int i = 0; i < 12'000 && kill(process, 0) == 0; ++i) std::this_thread::sleep_for(5ms);
  }
  Config config() const { return {.timeout = 30s, .dump = folder}; }

  const Folder made;
  const std::string folder = made.path();
};

TEST_F(Dumps, ARankInCodeOfItsUsersWritesThemWhenAsked) {
  EXPECT_EQ(run_processes(
                2,
                [&](Communicator& c) {
                  c.barrier();
                  const auto child = c.split(0, c.rank());
                  if (c.rank() == 0) kill(getpid(), SIGUSR2);
                  if (!comes_to(2)) throw std::runtime_error("not both communicators' dumps came");
                  c.barrier();
                },
                config()),
            "");
}

TEST_F(Dumps, ARankThatWaitsInAnOperationWritesThem) {
  EXPECT_EQ(run_processes(
                2,
                [&](Communicator& c) {
                  if (c.rank() == 1) {
                    if (!comes_to_be_told(under_way)) throw std::runtime_error("no dump told of it");
                    c.barrier();
                    return;
                  }
                  std::thread asks([&] { ask_until_something_is_under_way(); });
                  c.barrier();
                  asks.join();
                },
                config()),
            "");
}

TEST_F(Dumps, AProcessThatIsToldToEndWritesThemFirst) {
  for (const bool in_operation : {false, true}) {
    const std::size_t before = written();
    std::atomic<int>& process = seen_by_all();
    const std::string said = run_processes(
        2,
        [&](Communicator& c) {
          if (c.rank() == 0) process = getpid();
          c.barrier();
          if (c.rank() == 1) {
            if (!comes_to(before + 1)) throw std::runtime_error("no dump came");
            return stay_until_the_end_of(process);
          }
          kill(getpid(), SIGTERM);
          if (in_operation) c.barrier();
          std::this_thread::sleep_for(60s);
        },
        config());
    EXPECT_EQ(said, "rank 0: signal 15\n");
  }
  for (const std::string& name : files()) EXPECT_TRUE(name.ends_with(".json")) << name;
}

// A signal ends a sleep early: the program must not go on to what follows the sleep, nor a dump show it.
TEST_F(Dumps, ASleeperThatIsToldToEndDoesNotGoOn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer delivers signals when it likes";
#endif
  auto* const went_on = static_cast<std::atomic<int>*>(
      mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const std::string said = run_processes(
      2,
      [&](Communicator& c) {
        c.barrier();
        if (c.rank() == 1) {
          if (!comes_to(1)) throw std::runtime_error("no dump came");
          return;
        }
        std::thread([thread = pthread_self()] {
          std::this_thread::sleep_for(100ms);
          pthread_kill(thread, SIGTERM);
        }).detach();
        ::sleep(60);
        *went_on = 1;
        c.barrier();
      },
      config());
  EXPECT_EQ(said, "rank 0: signal 15\n");
  EXPECT_EQ(*went_on, 0);
  const RankDump dump = only_dump();
  ASSERT_EQ(dump.entries.size(), 1U);
  EXPECT_FALSE(dump.entries[0].under_way);
  EXPECT_EQ(dump.signal, "TERM");
  EXPECT_EQ(dump.trouble, FailureKind::none);
}

// The dump must not show an operation that another thread begins after the signal has come.
TEST_F(Dumps, ADumpTellsOfTheMomentAtWhichTheSignalCame) {
  std::atomic<int>& process = seen_by_all();
  const std::string said = run_processes(
      2,
      [&](Communicator& c) {
        if (c.rank() == 0) process = getpid();
        c.barrier();
        if (c.rank() == 1) {
          if (!comes_to(1)) throw std::runtime_error("no dump came");
          return stay_until_the_end_of(process);
        }
        std::thread other([&, before = dumps_requested()] {
          while (dumps_requested() == before) {
          }
          c.barrier();
        });
        kill(getpid(), SIGUSR2);
        if (!comes_to(1)) throw std::runtime_error("no dump of our own came");
        _exit(0);
      },
      config());
  EXPECT_EQ(said, "");
  const RankDump dump = only_dump();
  ASSERT_EQ(dump.entries.size(), 1U);
  EXPECT_FALSE(dump.entries[0].under_way);
}

TEST_F(Dumps, TheFirstFailureStaysWhateverFollows) {
  const std::string said = run_processes(2,
                                         [&](Communicator& c) {
                                           c.barrier();
                                           if (c.rank() == 1) {
                                             if (!comes_to(1)) throw std::runtime_error("no dump came");
                                             try {
                                               c.barrier();
                                             } catch (const PeerLost&) {
                                             }
                                             return;
                                           }
                                           try {
                                             c.barrier();
                                           } catch (const PeerLost&) {
                                           }
                                           c.abort();
                                           kill(getpid(), SIGTERM);
                                           std::this_thread::sleep_for(60s);
                                         },
                                         {.timeout = long_deadline, .dump = folder});
  EXPECT_EQ(said, "rank 0: signal 15\n");
  const std::map<Rank, RankDump> dumps = this->dumps();
  ASSERT_EQ(dumps.size(), 2U);
  const RankDump &first = dumps.at(0), &late = dumps.at(1);
  EXPECT_EQ(std::tuple(first.trouble, first.blamed, first.signal), std::tuple(FailureKind::lost, 1, ""));
  EXPECT_TRUE(first.entries.back().under_way);
  EXPECT_EQ(first.waits_for, 1);
  ASSERT_EQ(first.seen.size(), 2U);
  EXPECT_FALSE(first.seen[1].last.under_way);
  EXPECT_EQ(first.seen[1].last.operation, 1U);
  EXPECT_EQ(late.trouble, FailureKind::lost);
  EXPECT_EQ(late.entries.size(), 1U);  // it began nothing more, as the others had given it up
}

TEST_F(Dumps, ARankThatDividesWritesThemWhenItIsToldToEnd) {
  std::atomic<int>& process = seen_by_all();
  const std::string said = run_processes(
      2,
      [&](Communicator& c) {
        if (c.rank() == 0) process = getpid();
        c.barrier();
        if (c.rank() == 1) {
          if (!comes_to_be_told([](const RankDump& d) { return d.signal == "TERM"; }))
            throw std::runtime_error("no dump came");
          return stay_until_the_end_of(process);
        }
        std::thread([&] {
          ask_until_something_is_under_way();
          kill(getpid(), SIGTERM);
        }).detach();
        c.split(0, 0);
      },
      config());
  EXPECT_EQ(said, "rank 0: signal 15\n");
  const RankDump dump = only_dump();
  EXPECT_EQ(dump.entries.back().division, "split");
  EXPECT_TRUE(dump.entries.back().under_way);
}

TEST_F(Dumps, WhatCouldNotBeMadeIsWrittenDown) {
  EXPECT_THROW(Communicator::create(memory_store(), 0, 2, {.timeout = 100ms, .transport = "loopback", .dump = folder}),
               PeerLost);
  const RankDump dump = only_dump();
  EXPECT_FALSE(dump.made());
  EXPECT_EQ(std::tuple(dump.trouble, dump.blamed, dump.ranks), std::tuple(FailureKind::lost, 1, 2));
}

TEST_F(Dumps, TheProcesssOtherCommunicatorsAreWrittenWithTheOneThatFails) {
  EXPECT_EQ(run_processes(2,
                          [&](Communicator& c) {
                            const auto child = c.split(0, 1 - c.rank());
                            c.barrier();
                            if (c.rank() == 1) {
                              if (!comes_to(2)) throw std::runtime_error("no two dumps came");
                              return;
                            }
                            try {
                              child->barrier();
                            } catch (const PeerLost&) {
                            }
                          },
                          {.timeout = long_deadline, .dump = folder}),
            "");
  bool child_seen = false;
  for (const RankDump& dump : all_dumps()) {
    if (dump.parent.empty()) continue;
    child_seen = true;
    EXPECT_EQ(dump.in_parent, (std::vector<Rank>{1, 0}));
  }
  EXPECT_TRUE(child_seen);
}

// A forked process has its parent's signal handlers, but not the library's thread that serves them.
TEST_F(Dumps, AForkedProcessEndsWhenItIsToldTo) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer delivers signals itself, and not to a forked process as the system would";
#endif
  EXPECT_EQ(run_processes(
                1,
                [&](Communicator& c) {
                  c.barrier();
                  const pid_t child = fork();
                  if (child == 0) {
                    kill(getpid(), SIGUSR2);
                    kill(getpid(), SIGTERM);
                    std::this_thread::sleep_for(60s);
                    _exit(0);
                  }
                  int status = 0;
                  waitpid(child, &status, 0);
                  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM)
                    throw std::runtime_error("the child went on");
                },
                config()),
            "");
  EXPECT_EQ(written(), 0);
}

TEST_F(Dumps, AnAbortIsWrittenDown) {
  EXPECT_EQ(run_threads(2, [](Communicator& c) { c.abort(); }, {.timeout = 20s, .dump = folder}), "");
  EXPECT_EQ(written(), 2);
  EXPECT_NE(all().find("the communicator was aborted by rank"), std::string::npos);
  for (const RankDump& dump : all_dumps()) {
    EXPECT_EQ(dump.trouble, FailureKind::aborted);
    EXPECT_EQ(dump.blamed, all_dumps().front().blamed);  // all blame the same rank, the first to abort
  }
}

// An attacker who may write to the folder may know the process's number, and so the dump's name.
TEST_F(Dumps, ALinkThatSomebodyHasPutThereIsNotFollowed) {
  const std::string victim = made.put("victim", "precious");
  const std::string name = fmt::format("{}/trellis_making_{}_rank0.json", folder, getpid());
  std::filesystem::create_symlink(victim, name + ".part");
  std::filesystem::create_symlink(victim, name);
  EXPECT_THROW(Communicator::create(memory_store(), 0, 2, {.timeout = 100ms, .transport = "loopback", .dump = folder}),
               std::exception);
  std::ostringstream kept;
  kept << std::ifstream(victim).rdbuf();
  EXPECT_EQ(kept.str(), "precious");
  struct stat s = {};
  ASSERT_EQ(lstat(name.c_str(), &s), 0);
  EXPECT_TRUE(S_ISREG(s.st_mode));
  EXPECT_EQ(s.st_mode & 07777, 0600U);
}

}  // namespace
}  // namespace trellis::ccl
