#include "text/protobuf_writer.h"

#include <gtest/gtest.h>

namespace trellis::text {
namespace {

// The bytes are those of the format's own description.
TEST(Protobuf, FieldsAreWrittenAsTheFormatSays) {
  ProtobufWriter inner, m;
  inner.number(1, 150);
  EXPECT_EQ(inner.bytes(), "\x08\x96\x01");
  m.text(2, "testing");
  EXPECT_EQ(m.bytes(), "\x12\x07testing");
  m.clear();
  m.message(3, inner);
  EXPECT_EQ(m.bytes(), "\x1a\x03\x08\x96\x01");
  m.clear();
  m.number(16, ~std::uint64_t{0});
  EXPECT_EQ(m.take(), "\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(Protobuf, NumbersOfFixedSizeHaveTheirLowByteFirst) {
  ProtobufWriter m;
  m.fixed(1, 0x0807060504030201);
  EXPECT_EQ(m.bytes(), "\x09\x01\x02\x03\x04\x05\x06\x07\x08");
  m.clear();
  m.real(1, 1.0);
  EXPECT_EQ(m.bytes(), std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9));
  m.clear();
  m.real(2, 1.0F);
  EXPECT_EQ(m.bytes(), std::string("\x15\0\0\x80\x3f", 5));
}

TEST(Protobuf, AMessageIsFramedByItsSize) {
  ProtobufWriter file;
  file.after_its_size(std::string(300, 'x'));
  EXPECT_EQ(file.bytes(), "\xac\x02" + std::string(300, 'x'));
}

}  // namespace
}  // namespace trellis::text
