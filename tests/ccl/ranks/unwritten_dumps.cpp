// Dumps that cannot be written: which error tells of that, and when.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "net/descriptor.h"
#include "tests/ccl/ranks/run.h"
#include "tests/folder.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

class UnwrittenDumps : public testing::Test {
 protected:
  Config config() const { return {.timeout = 30s, .dump = folder.path() / "dumps"}; }

  const Folder folder;
};

// When a rank leaves and another's dump cannot be written, that one's error tells both, and names the rank that left.
TEST_F(UnwrittenDumps, AnErrorTellsThatItsDumpCouldNotBeWritten) {
  const Config c = config();
  const std::string said = run_processes(
      2,
      [&](Communicator& one) {
        one.barrier();
        if (one.rank() == 1) return;
        std::filesystem::remove_all(c.dump);
        try {
          one.barrier();
        } catch (const PeerLost& lost) {
          if (lost.rank != 1) throw std::runtime_error("another rank is named");
          if (one.error() == nullptr) throw std::runtime_error("it keeps no error");
          throw;
        }
      },
      c);
  EXPECT_NE(said.find("rank 1"), std::string::npos) << said;
  EXPECT_NE(said.find("; the dump could not be written: " + c.dump + "/trellis_"), std::string::npos) << said;
}

// How a process ends, and what it says, if it gets this signal and cannot write its dump.
std::pair<std::string, std::string> asked_in_vain(const Config& c, const std::string& heard, int signal) {
  const std::string ended = run_processes(
      1,
      [&](Communicator& one) {
        std::filesystem::remove_all(c.dump);
        const net::Descriptor file(open(heard.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
        dup2(file.number(), STDERR_FILENO);
        kill(getpid(), signal);
        for (const auto until = Clock::now() + 60s; std::filesystem::file_size(heard) == 0 && Clock::now() < until;)
          usleep(1000);
        if (signal == SIGTERM) sleep(60);
        one.barrier();
      },
      c);
  std::ostringstream said;
  said << std::ifstream(heard).rdbuf();
  return {ended, said.str()};
}

TEST_F(UnwrittenDumps, ASignalThatCannotBeAnsweredIsToldAtOnce) {
  const Config c = config();
  for (const int signal : {SIGUSR2, SIGTERM}) {
    const auto [ended, said] = asked_in_vain(c, folder.path() / "heard", signal);
    EXPECT_EQ(ended, signal == SIGTERM ? "rank 0: signal 15\n" : "");
    EXPECT_EQ(said.rfind("trellis: rank 0: the dump could not be written: " + c.dump + "/trellis_", 0), 0U) << said;
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  }
}

TEST_F(UnwrittenDumps, AFailureToCreateACommunicatorTellsIt) {
  const std::string in_a_file = folder.put("file", "") / "dumps";
  try {
    Communicator::create(memory_store(), 0, 2, {.timeout = 100ms, .transport = "loopback", .dump = in_a_file});
    FAIL() << "the other rank is missing";
  } catch (const std::exception& e) {
    EXPECT_NE(std::string_view(e.what()).find("; the dump could not be written: "), std::string_view::npos) << e.what();
  }
}

}  // namespace
}  // namespace trellis::ccl
