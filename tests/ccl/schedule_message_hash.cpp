// Schedules have one hash exactly if they send the same values to the same ranks.
#include "ccl/plan/schedule_message_hash.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string_view>

#include "schedule/algorithms/algorithm.h"
#include "schedule/formats/text.h"
#include "schedule/proof/fifo_order.h"

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

// The two schedules list two sends of rank 0 in different orders, with the same tags. Messages in one FIFO queue cannot
// keep these tags, so queued() renumbers them by the order of the list.
TEST(MessageHash, IsOfTheOrderInWhichMessagesAreQueued) {
  const auto listed = [](std::string_view second, std::string_view third) {
    return schedule::parse(fmt::format(R"(trellis schedule 1
collective all_to_all
ranks 2
pieces 3
algorithm mine
channels 1
rank 0 scratch 0
0 send in[3] to 1 tag 2
1 recv out[3] from 1 tag 0
2 {} after 1
3 {} after 1
4 recv out[4] from 1 tag 1
5 recv out[5] from 1 tag 2
6 copy out[0..2] = in[0..2]
rank 1 scratch 0
0 recv out[0] from 0 tag 2
1 send in[0] to 0 tag 0 after 0
2 recv out[1] from 0 tag 0
3 recv out[2] from 0 tag 1
4 send in[1] to 0 tag 1
5 send in[2] to 0 tag 2
6 copy out[3..5] = in[3..5]
)",
                                       second, third));
  };
  const schedule::Schedule one = listed("send in[4] to 1 tag 0", "send in[5] to 1 tag 1"),
                           other = listed("send in[5] to 1 tag 1", "send in[4] to 1 tag 0");
  EXPECT_EQ(message_hash(one), message_hash(other));
  EXPECT_NE(message_hash(schedule::queued(one, 1).schedule), message_hash(schedule::queued(other, 1).schedule));
}

}  // namespace
}  // namespace trellis::ccl
