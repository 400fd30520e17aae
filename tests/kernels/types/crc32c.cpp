#include "kernels/types/crc32c.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace trellis::kernels {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// The check value of the catalogue of CRCs, and those of RFC 3720, B.4.
TEST(Crc32c, IsAsPublished) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE306'9283U);
  EXPECT_EQ(crc32c(bytes_of("")), 0U);
  EXPECT_EQ(crc32c(std::vector(32, std::byte{0})), 0x8A91'36AAU);
  EXPECT_EQ(crc32c(std::vector(32, std::byte{0xFF})), 0x62A8'AB43U);
}

TEST(Crc32c, IsTheSameInPartsAndWithoutTheInstruction) {
  std::vector<std::byte> all(100);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i * 37 + 5);
  for (std::size_t size = 0; size <= all.size(); ++size) {
    const auto some = std::span(all).first(size);
    EXPECT_EQ(crc32c(some), crc32c_plainly(some)) << size;
    EXPECT_EQ(crc32c(std::span(all).subspan(size), crc32c(some)), crc32c(all)) << size;
  }
}

TEST(Crc32c, FindsEveryBitThatIsFlipped) {
  std::vector<std::byte> all(300, std::byte{0x5A});
  const std::uint32_t right = crc32c(all);
  for (std::size_t bit = 0; bit < 8 * all.size(); ++bit) {
    all[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_NE(crc32c(all), right) << bit;
    all[bit / 8] ^= std::byte{1} << bit % 8;
  }
}

}  // namespace
}  // namespace trellis::kernels
