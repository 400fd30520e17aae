// The published vectors: FIPS 180-4's examples, RFC 4231 for HMAC.
#include "net/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace trellis::net {
namespace {

std::string digest(const std::string& text) { return hexadecimal(sha256(bytes_of(text))); }

TEST(Sha256, PublishedExamples) {
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(short_digest("abc"), "ba7816bf8f01cfea");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The digests of 0 to 129 zero bytes, lengths that cross the block's border twice, all differ. The HMACs of RFC 4231
// below cross the border too.
TEST(Sha256, EveryLengthHasItsOwnDigest) {
  std::vector<std::string> seen;
  for (std::size_t n = 0; n < 130; ++n) seen.push_back(digest(std::string(n, '\0')));
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

struct Vector {
  std::string key, message, mac;
};

TEST(HmacSha256, Rfc4231) {
  std::string counting;
  for (char c = 1; c <= 25; ++c) counting += c;
  const std::vector<Vector> vectors = {
      {std::string(20, '\x0b'), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {counting, std::string(50, '\xcd'), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {std::string(131, '\xaa'),
       "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
       "hashed before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"}};
  for (const Vector& v : vectors) {
    const HmacKey key(bytes_of(v.key));
    EXPECT_EQ(hexadecimal(key.of({bytes_of(v.message)})), v.mac) << v.message;
    for (std::size_t cut = 0; cut <= v.message.size(); ++cut) {
      const auto whole = bytes_of(v.message);
      EXPECT_EQ(hexadecimal(key.of({whole.first(cut), whole.subspan(cut)})), v.mac) << v.message << " cut at " << cut;
    }
  }
}

TEST(Secrets, CompareByContentAndLength) {
  EXPECT_TRUE(equal_in_constant_time(bytes_of("abc"), bytes_of("abc")));
  EXPECT_FALSE(equal_in_constant_time(bytes_of("abc"), bytes_of("abd")));
  EXPECT_FALSE(equal_in_constant_time(bytes_of("abc"), bytes_of("abcd")));
  EXPECT_TRUE(equal_in_constant_time({}, {}));
}

TEST(Secrets, FreshOnesDiffer) {
  EXPECT_EQ(fresh_secret().size(), 32U);
  EXPECT_NE(fresh_secret(), fresh_secret());
}

}  // namespace
}  // namespace trellis::net
