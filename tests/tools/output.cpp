#include "tools/program/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include "tests/folder.h"

namespace trellis::tools {
namespace {

namespace fs = std::filesystem;

class Output : public testing::Test {
 protected:
  std::string path(const char* name) const { return (folder_.path() / name).string(); }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_.path())) all.insert(entry.path().filename().string());
    return all;
  }

 private:
  Folder folder_;
};

// Limits the size of this process's files while it lives, to act like a full disk.
class LargestFile {
 public:
  explicit LargestFile(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~LargestFile() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  LargestFile(const LargestFile&) = delete;
  LargestFile& operator=(const LargestFile&) = delete;

 private:
  rlimit before_ = {};
  void (*signal_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

TEST_F(Output, ReplacesTheFileAndKeepsItsMode) {
  const std::string file = path("a");
  write_output(file, "first");
  chmod(file.c_str(), 0640);
  write_output(file, "second, and longer");
  EXPECT_EQ(read_input(file), "second, and longer");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms{0640});
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(Output, ALinkStaysOne) {
  write_output(path("a"), "first");
  fs::create_symlink("a", path("link"));
  write_output(path("link"), "second");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_input(path("a")), "second");
}

TEST_F(Output, WhatCannotBeWrittenWholeLeavesTheFormerText) {
  const std::string text(100'000, 'x');
  write_output(path("a"), "first");
  {
    const LargestFile small(4096);
    EXPECT_THROW(write_output(path("a"), text), std::system_error);
    EXPECT_THROW(write_output(path("new"), text), std::system_error);
  }
  EXPECT_EQ(read_input(path("a")), "first");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(Output, AskingWhetherItCanBeWrittenLeavesNothing) {
  expect_writable(path("a"));
  EXPECT_TRUE(names().empty());
  write_output(path("a"), "first");
  expect_writable(path("a"));
  EXPECT_EQ(read_input(path("a")), "first");
  EXPECT_THROW(expect_writable(path("no/such/folder")), std::system_error);
  EXPECT_THROW(expect_writable(path(".")), std::system_error);
}

TEST_F(Output, DevicesAndPipesAreWrittenAsTheyAre) {
  EXPECT_NO_THROW(write_output("/dev/null", "text"));
  EXPECT_THROW(write_output("/dev/full", "text"), std::system_error);
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_output(path("pipe"), "text");
  char got[4] = {};
  EXPECT_EQ(read(reader, got, sizeof got), 4);
  close(reader);
  EXPECT_EQ(names(), std::set<std::string>{"pipe"});
}

// A reader of a pipe sees its end when the first writer closes, so a mere check must not be that writer.
TEST_F(Output, AskingWhetherAPipeCanBeWrittenDoesNotEndIt) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  expect_writable(path("pipe"));
  pollfd at_end = {reader, POLLIN, 0};
  EXPECT_EQ(poll(&at_end, 1, 0), 0) << at_end.revents;
  close(reader);
  EXPECT_NO_THROW(expect_writable("/dev/null"));
}

TEST_F(Output, AFileInSharedMemoryIsLikeAnyOther) {
  const std::string file = "/dev/shm/test_of_output." + std::to_string(getpid());
  expect_writable(file);
  EXPECT_FALSE(fs::exists(file));
  write_output(file, "first");
  {
    const LargestFile small(4096);
    EXPECT_THROW(write_output(file, std::string(100'000, 'x')), std::system_error);
  }
  EXPECT_EQ(read_input(file), "first");
  fs::remove(file);
}

}  // namespace
}  // namespace trellis::tools
