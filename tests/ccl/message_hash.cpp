// Schedules have one hash exactly if they send the same values to the same ranks.
#include "ccl/plan/message_hash.h"

#include <gtest/gtest.h>

#include "schedule/algorithms/algorithm.h"
#include "schedule/formats/text.h"

namespace trellis::ccl {
namespace {

using schedule::Collective;
using schedule::make;

TEST(MessageHash, IsOfNoBuffers) {
  for (const Collective collective : {Collective::all_gather, Collective::all_reduce, Collective::reduce_scatter}) {
    schedule::Request r{.operation = {.collective = collective}, .dims = {4}};
    const std::uint64_t apart = message_hash(make("ring", r));
    r.operation.in_place = true;
    EXPECT_EQ(message_hash(make("ring", r)), apart) << schedule::name(collective);
  }
}

TEST(MessageHash, IsOfWhatIsSentToWhom) {
  const schedule::Request plain{.dims = {2, 2}};
  const std::uint64_t ring = message_hash(make("ring", plain));
  schedule::Request other = plain;
  other.order = {1, 0};
  EXPECT_NE(message_hash(make("ring", other)), ring);
  other = plain;
  other.channels = 2;
  EXPECT_NE(message_hash(make("ring", other)), ring);
  EXPECT_NE(message_hash(make("direct", plain)), ring);
}

// The two differ in the block that each message holds, and in nothing else that a peer could see.
TEST(MessageHash, IsOfTheChunks) {
  const auto of = [](const char* first, const char* second) {
    const std::string all =
        std::string("trellis schedule 1\ncollective all_to_all\nranks 2\npieces 2\nalgorithm mine\nchannels 1\n") +
        "rank 0 scratch 0\n0 send in[" + first + "] to 1 tag 0\n1 send in[" + second + "] to 1 tag 1\n" +
        "2 recv out[2] from 1 tag 0\n3 recv out[3] from 1 tag 1\n4 copy out[0..1] = in[0..1]\n" +
        "rank 1 scratch 0\n0 recv out[0] from 0 tag 0\n1 recv out[1] from 0 tag 1\n" +
        "2 send in[0] to 0 tag 0\n3 send in[1] to 0 tag 1\n4 copy out[2..3] = in[2..3]\n";
    return message_hash(schedule::parse(all));
  };
  EXPECT_EQ(of("2", "3"), of("2", "3"));
  EXPECT_NE(of("2", "3"), of("3", "2"));
}

}  // namespace
}  // namespace trellis::ccl
