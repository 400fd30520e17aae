#include <gtest/gtest.h>

#include "measure/published/record.h"

namespace trellis::measure {
namespace {

// The launch of another stream's collective comes before this collective, and does not depend on this one's figures: it
// shifts the range without widening it.
TEST(Published, AnotherStreamsLaunchMovesTheRangeAsItIs) {
  const auto answered = [](bool beside) {
    Record r{.id = "coll.two_streams",
             .generation = "NeuronCore-v3",
             .instance = "trn2.48xlarge",
             .unit = "us",
             .parameters = {{"op", "allgather"},
                            {"ranks", 64},
                            {"dtype", "fp32"},
                            {"size_bytes", 1024},
                            {"doc_first_seen", "v2.32.0"},
                            {"runtime_era", "2025-26"}}};
    if (beside) r.parameters["concurrent_with"] = "stream 0";
    return answer(r, {});
  };
  const RecordAnswer alone = answered(false), beside = answered(true);
  ASSERT_TRUE(alone.simulated && alone.launch && beside.simulated && beside.launch) << alone.why_not << beside.why_not;
  const double later = *beside.simulated - *alone.simulated;
  EXPECT_GT(later, 10);
  EXPECT_LT(alone.range.low, *alone.simulated);
  EXPECT_NEAR(beside.range.low, alone.range.low + later, 1e-6);
  EXPECT_NEAR(beside.range.high, alone.range.high + later, 1e-6);
  EXPECT_NEAR(beside.launch->rest, alone.launch->rest + later, 1e-6);
}

}  // namespace
}  // namespace trellis::measure
