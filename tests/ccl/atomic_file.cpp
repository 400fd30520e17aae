// Files that are written whole or not at all.
#include "ccl/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "tests/folder.h"

namespace trellis::ccl {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t files_in(const Folder& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST(AtomicFile, ReplacesAWholeFileAtItsEnd) {
  const Folder folder;
  const std::filesystem::path path = folder.put("x", "before");
  AtomicFile file(path, path.string() + ".part", 0600);
  file.write("after", 5);
  EXPECT_EQ(text_of(path), "before");
  file.finish_safe();
  EXPECT_EQ(text_of(path), "after");
  struct stat s = {};
  ASSERT_EQ(stat(path.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07777, 0600U);
  EXPECT_EQ(files_in(folder), 1U);
}

TEST(AtomicFile, ThatIsNotFinishedLeavesNothing) {
  const Folder folder;
  { AtomicFile(folder.path() / "x", unforeseen_draft(folder.path() / "x"), 0600).write("some", 4); }
  EXPECT_EQ(files_in(folder), 0U);
}

TEST(AtomicFile, FollowsNoLink) {
  const Folder folder;
  const std::filesystem::path victim = folder.put("victim", "precious"), path = folder.path() / "x";
  for (const char* const link : {"x", "x.part"}) std::filesystem::create_symlink(victim, folder.path() / link);
  AtomicFile file(path, path.string() + ".part", 0600);
  file.write("own", 3);
  file.finish();
  EXPECT_EQ(text_of(victim), "precious");
  EXPECT_EQ(text_of(path), "own");
  EXPECT_FALSE(std::filesystem::is_symlink(path));
}

TEST(AtomicFile, NamesTheFileThatCannotBeWritten) {
  const Folder folder;
  const std::filesystem::path path = folder.path() / "gone" / "x";
  try {
    AtomicFile(path, unforeseen_draft(path), 0600);
    FAIL() << "there is no such folder";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code().value(), ENOENT);
    EXPECT_NE(std::string(e.what()).find(path.string() + ":"), std::string::npos) << e.what();
  }
}

TEST(AtomicFile, DraftsHaveNamesOfTheirOwn) { EXPECT_NE(unforeseen_draft("x"), unforeseen_draft("x")); }

}  // namespace
}  // namespace trellis::ccl
