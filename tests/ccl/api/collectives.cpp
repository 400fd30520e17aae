// Every operation of the C API does what its header says.
#include <numeric>

#include "tests/ccl/api/ranks.h"

namespace trellis::ccl {
namespace {

constexpr int ranks = 3;
constexpr std::size_t n = 5;
using Ints = std::vector<std::int32_t>;

// Element i of rank r's input; all elements of all ranks differ.
std::int32_t brought(int rank, std::size_t i) { return 100 * (rank + 1) + static_cast<std::int32_t>(i); }
Ints contribution(int rank, std::size_t count) {
  Ints v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = brought(rank, i);
  return v;
}
Ints sum_of_all(std::size_t count) {
  Ints v(count);
  for (int r = 0; r < ranks; ++r)
    for (std::size_t i = 0; i < count; ++i) v[i] += brought(r, i);
  return v;
}
Ints part(const Ints& v, std::size_t from, std::size_t count) {
  return {v.begin() + static_cast<std::ptrdiff_t>(from), v.begin() + static_cast<std::ptrdiff_t>(from + count)};
}

TEST(Api, AllReduce) {
  const Ranks r(ranks);
  r.each([&](int rank, trellis_comm comm) {
    const Ints in = contribution(rank, n);
    Ints out(n);
    EXPECT_TRUE(done(trellis_all_reduce(comm, in.data(), out.data(), n, TRELLIS_I32, TRELLIS_SUM, nullptr)));
    EXPECT_EQ(out, sum_of_all(n));
    Ints same = in;
    EXPECT_TRUE(done(trellis_all_reduce(comm, same.data(), same.data(), n, TRELLIS_I32, TRELLIS_MAX, nullptr)));
    EXPECT_EQ(same, contribution(ranks - 1, n));
    EXPECT_TRUE(done(trellis_all_reduce(comm, nullptr, nullptr, 0, TRELLIS_I32, TRELLIS_SUM, nullptr)));
  });
}

TEST(Api, ReduceAndScatter) {
  const Ranks r(ranks);
  r.each([&](int rank, trellis_comm comm) {
    const Ints in = contribution(rank, n * ranks);
    Ints out(n);
    EXPECT_TRUE(done(trellis_reduce_scatter(comm, in.data(), out.data(), n, TRELLIS_I32, TRELLIS_SUM, nullptr)));
    EXPECT_EQ(out, part(sum_of_all(n * ranks), n * static_cast<std::size_t>(rank), n));
    out.assign(n, 0);
    EXPECT_TRUE(done(trellis_reduce(comm, in.data(), out.data(), n, TRELLIS_I32, TRELLIS_SUM, 1, nullptr)));
    if (rank == 1) {
      EXPECT_EQ(out, sum_of_all(n));
    }
    EXPECT_TRUE(done(trellis_scatter(comm, in.data(), out.data(), n, TRELLIS_I32, 2, nullptr)));
    EXPECT_EQ(out, part(contribution(2, n * ranks), n * static_cast<std::size_t>(rank), n));
  });
}

TEST(Api, GatherAndBroadcast) {
  const Ranks r(ranks);
  Ints all;
  for (int rank = 0; rank < ranks; ++rank) {
    const Ints one = contribution(rank, n);
    all.insert(all.end(), one.begin(), one.end());
  }
  r.each([&](int rank, trellis_comm comm) {
    const Ints in = contribution(rank, n);
    Ints out(n * ranks);
    EXPECT_TRUE(done(trellis_all_gather(comm, in.data(), out.data(), n, TRELLIS_I32, nullptr)));
    EXPECT_EQ(out, all);
    out.assign(n * ranks, 0);
    EXPECT_TRUE(done(trellis_gather(comm, in.data(), out.data(), n, TRELLIS_I32, 0, nullptr)));
    if (rank == 0) {
      EXPECT_EQ(out, all);
    }
    Ints told(n);
    EXPECT_TRUE(done(trellis_broadcast(comm, in.data(), told.data(), n, TRELLIS_I32, 1, nullptr)));
    EXPECT_EQ(told, contribution(1, n));
  });
}

TEST(Api, AllToAllAndBarrier) {
  const Ranks r(ranks);
  r.each([&](int rank, trellis_comm comm) {
    const Ints in = contribution(rank, n * ranks);
    Ints out(n * ranks), expected;
    for (int from = 0; from < ranks; ++from)
      for (std::size_t i = 0; i < n; ++i) expected.push_back(brought(from, n * static_cast<std::size_t>(rank) + i));
    EXPECT_TRUE(done(trellis_all_to_all(comm, in.data(), out.data(), n, TRELLIS_I32, nullptr)));
    EXPECT_EQ(out, expected);
    EXPECT_TRUE(done(trellis_barrier(comm, nullptr)));
  });
}

TEST(Api, UnevenBlocks) {
  const Ranks r(ranks);
  const std::vector<std::size_t> counts = {2, 0, 3};
  const std::vector<std::size_t> begins = {0, 2, 2};
  r.each([&](int rank, trellis_comm comm) {
    const auto me = static_cast<std::size_t>(rank);
    Ints gathered(5), expected;
    for (int from = 0; from < ranks; ++from)
      for (std::size_t i = 0; i < counts[static_cast<std::size_t>(from)]; ++i) expected.push_back(brought(from, i));
    const Ints in = contribution(rank, 5);
    EXPECT_TRUE(done(trellis_all_gather_v(comm, in.data(), gathered.data(), counts.data(), TRELLIS_I32, nullptr)));
    EXPECT_EQ(gathered, expected);

    Ints block(counts[me]);
    EXPECT_TRUE(done(
        trellis_reduce_scatter_v(comm, in.data(), block.data(), counts.data(), TRELLIS_I32, TRELLIS_SUM, nullptr)));
    EXPECT_EQ(block, part(sum_of_all(5), begins[me], counts[me]));

    // Every rank sends 2, 0 and 3 elements to ranks 0, 1 and 2, so a rank receives equally many from each: 2, 0 or 3.
    const std::vector<std::size_t> arriving(ranks, counts[me]);
    Ints arrived(ranks * counts[me]), wanted;
    for (int from = 0; from < ranks; ++from)
      for (std::size_t i = 0; i < counts[me]; ++i) wanted.push_back(brought(from, begins[me] + i));
    EXPECT_TRUE(done(
        trellis_all_to_all_v(comm, in.data(), arrived.data(), counts.data(), arriving.data(), TRELLIS_I32, nullptr)));
    EXPECT_EQ(arrived, wanted);
  });
}

TEST(Api, SendsAndReceivesOfAGroupGoOnAtOnce) {
  const Ranks r(ranks);
  r.each([&](int rank, trellis_comm comm) {
    const Ints in = contribution(rank, n);
    Ints out(n);
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    EXPECT_TRUE(done(trellis_group_start()));
    EXPECT_TRUE(done(trellis_send(comm, in.data(), n, TRELLIS_I32, next, nullptr)));
    EXPECT_TRUE(done(trellis_recv(comm, out.data(), n, TRELLIS_I32, before, nullptr)));
    EXPECT_EQ(out, Ints(n));  // only recorded until the group's end
    EXPECT_TRUE(done(trellis_group_end()));
    EXPECT_EQ(out, contribution(before, n));
  });
}

TEST(Api, RunPutsWhatTheOthersCannotSay) {
  const Ranks r(ranks);
  r.each([&](int rank, trellis_comm comm) {
    const std::vector<float> in(n, 1);
    std::vector<float> out(n);
    trellis_call scaled = TRELLIS_CALL_INIT;
    scaled.in = in.data();
    scaled.out = out.data();
    scaled.count = n;
    scaled.reduction = TRELLIS_SCALED_SUM;
    scaled.factor = rank + 1;
    EXPECT_TRUE(done(trellis_run(comm, &scaled, nullptr)));
    EXPECT_EQ(out, std::vector<float>(n, 6));

    const trellis_pair pairs[] = {{0, 2}, {2, 0}};
    trellis_call swap = TRELLIS_CALL_INIT;
    swap.collective = TRELLIS_PERMUTE;
    const Ints mine = contribution(rank, n);
    Ints theirs(n);
    swap.in = mine.data();
    swap.out = theirs.data();
    swap.count = n;
    swap.type = TRELLIS_I32;
    swap.pairs = pairs;
    swap.pair_count = 2;
    EXPECT_TRUE(done(trellis_run(comm, &swap, nullptr)));
    EXPECT_EQ(theirs, rank == 1 ? Ints(n) : contribution(2 - rank, n));
  });
}

TEST(Api, RunAlongAScheduleOfTheCallers) {
  const std::string exchange =
      "trellis schedule 1\ncollective all_gather\nranks 2\npieces 1\nalgorithm mine\nchannels 1\n\n"
      "rank 0 scratch 0\n0 copy out[0] = in[0]\n1 send in[0] to 1 tag 0\n2 recv out[1] from 1 tag 0\n\n"
      "rank 1 scratch 0\n0 copy out[1] = in[0]\n1 send in[0] to 0 tag 0\n2 recv out[0] from 0 tag 0\n";
  const Ranks r(2);
  r.each([&](int rank, trellis_comm comm) {
    const std::int32_t in = brought(rank, 0);
    Ints out(2);
    trellis_call call = TRELLIS_CALL_INIT;
    call.collective = TRELLIS_ALL_GATHER;
    call.in = &in;
    call.out = out.data();
    call.count = 1;
    call.type = TRELLIS_I32;
    EXPECT_TRUE(done(trellis_run_schedule(comm, &call, exchange.c_str(), nullptr)));
    EXPECT_EQ(out, (Ints{100, 200}));
    EXPECT_TRUE(refused(trellis_run_schedule(comm, &call, "trellis schedule 9", nullptr), TRELLIS_INVALID_ARGUMENT,
                        "trellis schedule"));
    char name[64];
    EXPECT_TRUE(done(trellis_algorithm(comm, &call, name, sizeof name)));
    EXPECT_NE(std::string(name), "");
    EXPECT_TRUE(refused(trellis_algorithm(comm, &call, name, 1), TRELLIS_INVALID_ARGUMENT, "size 1"));
  });
}

TEST(Api, OneThreadHoldsAllRanksWithinGroups) {
  const Ranks r(ranks);
  std::vector<Ints> out(ranks, Ints(n)), in;
  for (int rank = 0; rank < ranks; ++rank) in.push_back(contribution(rank, n));
  ASSERT_TRUE(done(trellis_group_start()));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    EXPECT_TRUE(done(trellis_all_reduce(r[rank], in[i].data(), out[i].data(), n, TRELLIS_I32, TRELLIS_SUM, nullptr)));
  }
  ASSERT_TRUE(done(trellis_group_end()));
  for (const Ints& each : out) EXPECT_EQ(each, sum_of_all(n));
}

TEST(Api, OnStreamsACallReturnsAtOnce) {
  const Ranks r(ranks);
  std::vector<trellis_stream> streams(ranks);
  std::vector<Ints> data;
  for (int rank = 0; rank < ranks; ++rank) {
    ASSERT_TRUE(done(trellis_stream_create(&streams[static_cast<std::size_t>(rank)])));
    data.push_back(contribution(rank, n));
  }
  for (int rank = 0; rank < ranks; ++rank) {  // one after the other, in one thread: none may wait for the others
    const auto i = static_cast<std::size_t>(rank);
    EXPECT_TRUE(
        done(trellis_all_reduce(r[rank], data[i].data(), data[i].data(), n, TRELLIS_I32, TRELLIS_SUM, streams[i])));
  }
  for (trellis_stream s : streams) EXPECT_TRUE(done(trellis_stream_synchronize(s)));
  for (const Ints& each : data) EXPECT_EQ(each, sum_of_all(n));
  std::uint64_t operations = 0;
  EXPECT_TRUE(done(trellis_comm_operations(r[0], &operations)));
  EXPECT_EQ(operations, 1u);
  for (trellis_stream s : streams) EXPECT_TRUE(done(trellis_stream_destroy(s)));
}

TEST(Api, F32TravelsAsTheConfigSays) {
  trellis_config config = TRELLIS_CONFIG_INIT;
  config.wire = TRELLIS_BF16;
  config.algorithm = "recursive_doubling";
  Ranks r(2, config);
  r.each([](int rank, trellis_comm comm) {
    const float mine = rank == 0 ? 1 + 0x1p-9F : 3;
    float sum = 0;
    EXPECT_TRUE(done(trellis_all_reduce(comm, &mine, &sum, 1, TRELLIS_F32, TRELLIS_SUM, nullptr)));
    EXPECT_EQ(sum, 4);
  });
}

}  // namespace
}  // namespace trellis::ccl
