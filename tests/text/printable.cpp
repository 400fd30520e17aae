#include "text/printable.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace trellis::text {
namespace {

TEST(Printable, TextStays) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("no machine is called 'trn9'"), "no machine is called 'trn9'");
  EXPECT_EQ(printable("größer \xe2\x82\xac \xf0\x9f\x98\x80"), "größer \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(Printable, WhatMovesTheCursorIsSpelledOut) {
  EXPECT_EQ(printable("\x1b[2J\a\r\n\t\x7f"), "\\x1b[2J\\x07\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");  // the same as \x1b[ to some terminals
}

TEST(Printable, BytesThatAreNoTextAreSpelledOut) {
  EXPECT_EQ(printable("\xff"
                      "a"),
            "\\xffa");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");                    // cut short
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond the last code point
}

TEST(Printable, AFileWithAZeroByteIsNoText) {
  EXPECT_NO_THROW(expect_text("a.txt", "all of it"));
  try {
    expect_text("a.out", std::string_view("ab\0c", 4));
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "a.out: not a text file, as byte 3 is zero");
  }
}

}  // namespace
}  // namespace trellis::text
