#include "text/read_file.h"

#include <gtest/gtest.h>

#include <system_error>

#include "tests/folder.h"
#include "tests/why.h"

namespace trellis::text {
namespace {

TEST(File, IsReadAsItIs) {
  const Folder folder;
  const std::string bytes = std::string("a\0b\r\n", 5) + std::string(1 << 17, 'x');
  EXPECT_EQ(read_file(folder.put("some", bytes)), bytes);
  EXPECT_EQ(read_file(folder.put("none", "")), "");
}

TEST(File, WhatCannotBeReadIsSaidByName) {
  const Folder folder;
  const std::string gone = folder.path() / "gone", place = folder.path();
  EXPECT_EQ(why<std::system_error>([&] { read_file(gone); }), "cannot read '" + gone + "': No such file or directory");
  EXPECT_EQ(why<std::system_error>([&] { read_file(place); }), "cannot read '" + place + "': Is a directory");
}

}  // namespace
}  // namespace trellis::text
