// The flight recorders' files: who writes them, and when.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;

class Dumps : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "trellis_dumps_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

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
    for (int i = 0; i < 2'000 && written() != count; ++i) std::this_thread::sleep_for(5ms);
    return written() == count;
  }
  std::string all() const {
    std::ostringstream text;
    for (const std::string& name : files()) text << std::ifstream(folder + "/" + name).rdbuf();
    return text.str();
  }
  Config config() const { return {.timeout = 20s, .dump = folder}; }

  std::string folder;
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
                    if (!comes_to(1)) throw std::runtime_error("no dump came");
                    c.barrier();
                    return;
                  }
                  std::thread asks([] {
                    std::this_thread::sleep_for(50ms);
                    kill(getpid(), SIGUSR2);
                  });
                  asks.detach();
                  c.barrier();
                },
                config()),
            "");
  EXPECT_NE(all().find("\"started\""), std::string::npos);
}

TEST_F(Dumps, AProcessThatIsToldToEndWritesThemFirst) {
  for (const bool in_operation : {false, true}) {
    const std::size_t before = written();
    const std::string said = run_processes(
        2,
        [&](Communicator& c) {
          c.barrier();
          if (c.rank() == 1) {
            if (!comes_to(before + 1)) throw std::runtime_error("no dump came");
            return;
          }
          kill(getpid(), SIGTERM);
          if (in_operation) c.barrier();
          std::this_thread::sleep_for(20s);
        },
        config());
    EXPECT_EQ(said, "rank 0: signal 15\n");
  }
  for (const std::string& name : files()) EXPECT_TRUE(name.ends_with(".json")) << name;
}

// It has its parent's handlers, and nobody of the library's who would serve them.
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
                    std::this_thread::sleep_for(20s);
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
  EXPECT_NE(all().find("the communicator was aborted"), std::string::npos);
}

}  // namespace
}  // namespace trellis::ccl
