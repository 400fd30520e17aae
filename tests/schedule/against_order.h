// Schedules in text that are right, though the order in which they are written down suggests otherwise.
#pragma once

#include <string_view>

namespace trellis::schedule {

// Rank 1 can send its first message only after its second.
inline constexpr std::string_view against_tags = R"(trellis schedule 1
collective reduce
ranks 2
pieces 2
root 0
channels 1

rank 0 scratch 0
0 recv_reduce out[0] = in[0] from 1 tag 0
1 recv_reduce out[1] = in[1] from 1 tag 1

rank 1 scratch 0
0 send in[1] to 0 tag 1
1 send in[0] to 0 tag 0 after 0
)";

// Rank 0's second write of tmp[0] waits for rank 1's answer, which waits for the first read. The steps are listed in
// the opposite order.
inline constexpr std::string_view against_the_list = R"(trellis schedule 1
collective broadcast
ranks 2
pieces 1
root 0
channels 1

rank 0 scratch 2 like 0 0
0 recv tmp[1] from 1 tag 0
1 copy out[0] = tmp[0] after 0
2 copy tmp[0] = in[0]
3 send tmp[0] to 1 tag 0 after 2

rank 1 scratch 0
0 recv out[0] from 0 tag 0
1 send out[0] to 0 tag 0 after 0
)";

}  // namespace trellis::schedule
