// What only the file store does: the files that it leaves, finds, and cannot write.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "ccl/store.h"
#include "net/sha256.h"
#include "tests/folder.h"
#include "tests/why.h"

namespace trellis::ccl {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class FileStore : public testing::Test {
 protected:
  const Folder parent;
  const fs::path folder = parent.path() / "store";

  std::string complaint(const fs::path& at, const std::string& job = "") {
    return why<std::system_error>([&] { file_store(at, job); });
  }

  // Does the work in a process that is then killed.
  template <class F>
  void in_a_process_that_is_killed(F work) {
    const pid_t child = fork();
    if (child == 0) {
      try {
        const std::shared_ptr<Store> store = file_store(folder);
        work(*store);
        kill(getpid(), SIGKILL);
      } catch (...) {
      }
      _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
};

TEST_F(FileStore, TheLastOneOutLeavesAnEmptyFolder) {
  {
    const auto one = file_store(folder, "job");
    one->set("a", net::bytes_of("x"));
    {
      const auto other = file_store(folder, "job");
      other->add("n", 1);
    }
    EXPECT_EQ(one->add("n", 1), 2) << "whoever leaves first takes nothing along";
  }
  EXPECT_TRUE(fs::is_empty(folder));
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  const auto again = file_store(folder);
  EXPECT_THROW(again->get("a", Clock::now()), TimedOut);
}

TEST_F(FileStore, NotesOfAKilledJobAreNamedAndNotRead) {
  in_a_process_that_is_killed([](Store& store) { store.set("a", net::bytes_of("old")); });
  const std::string said = complaint(folder);
  EXPECT_NE(said.find("notes of a job that is over"), std::string::npos) << said;
  EXPECT_NE(said.find(folder.string()), std::string::npos) << said;
}

TEST_F(FileStore, AKilledJobWithoutNotesIsNoObstacle) {
  in_a_process_that_is_killed([](Store&) {});
  EXPECT_EQ(complaint(folder), "");
}

TEST_F(FileStore, AnotherJobsFolderIsRefused) {
  const auto first = file_store(folder, "first");
  const std::string said = complaint(folder, "second");
  EXPECT_NE(said.find("in use by job 'first', and this is job 'second'"), std::string::npos) << said;
  EXPECT_EQ(complaint(folder, "first"), "");
}

TEST_F(FileStore, AFolderThatCannotBeWrittenIsNamed) {
  EXPECT_NE(complaint("/proc/trellis").find("/proc/trellis"), std::string::npos);
  EXPECT_NE(complaint("/dev/null").find("/dev/null"), std::string::npos);
  EXPECT_THROW(file_store(""), std::invalid_argument);
}

TEST_F(FileStore, ALinkInPlaceOfANoteIsNotFollowed) {
  const auto store = file_store(folder);
  fs::create_symlink("/etc/hostname", folder / "note.a");
  EXPECT_THROW(store->get("a", Clock::now() + 1s), std::system_error);
  store->set("a", net::bytes_of("ours"));
  EXPECT_EQ(store->get("a", Clock::now()).size(), 4U);
}

TEST_F(FileStore, AmongProcesses) {
  const auto store = file_store(folder);
  const pid_t child = fork();
  if (child == 0) {
    try {
      const auto mine = file_store(folder);
      mine->get("go", Clock::now() + 60s);
      mine->set("answer", net::bytes_of("42"));
      mine->get("end", Clock::now() + 60s);
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  store->set("go", {});
  EXPECT_EQ(store->get("answer", Clock::now() + 60s).size(), 2U);
  store->set("end", {});
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace trellis::ccl
