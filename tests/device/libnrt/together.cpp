// What the stand-in's devices do together, here in threads of one process; ranks/ has processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/device/standin.h"

namespace trellis::device {
namespace {

using nrt::Status;

// Runs a function on each of n cores at once.
template <class Work>
void on_cores(std::uint32_t n, Work work) {
  std::vector<std::thread> threads;
  for (std::uint32_t c = 0; c < n; ++c) threads.emplace_back(work, c);
  for (std::thread& t : threads) t.join();
}

TEST(NrtTogether, AGatheringGivesEveryoneEverything) {
  const Standin n;
  on_cores(4, [&](std::uint32_t c) {
    EXPECT_EQ(n->nrt_build_global_comm(static_cast<int>(c), c, 4), Status::success);
    for (int round = 0; round < 3; ++round) {
      std::uint32_t own = 100 * c + static_cast<std::uint32_t>(round), all[4] = {};
      EXPECT_EQ(n->nrt_all_gather(static_cast<int>(c), c, 4, sizeof own, &own, all), Status::success) << n.why();
      for (std::uint32_t m = 0; m < 4; ++m) EXPECT_EQ(all[m], 100 * m + static_cast<std::uint32_t>(round));
    }
    EXPECT_EQ(n->nrt_barrier(static_cast<int>(c), c, 4), Status::success);
  });
  for (std::uint32_t c = 1; c < 4; ++c) EXPECT_EQ(n.time(c), n.time(0)) << "a barrier brings clocks together";
  EXPECT_GT(n.time(0), 0);
}

TEST(NrtTogether, AMissingMemberIsNamedAtTheDeadline) {
  const Standin n;
  setenv("NEURON_RT_EXEC_TIMEOUT", "6", 1);  // NOLINT(concurrency-mt-unsafe): so the two that come are in time
  n->nrt_close();
  ASSERT_EQ(n->nrt_init(nrt::Framework::none, "", ""), Status::success);
  on_cores(2, [&](std::uint32_t c) {
    EXPECT_EQ(n->nrt_barrier(static_cast<int>(c), c, 3), Status::collective_stuck);
    EXPECT_NE(n.why().find("did not come in time: 2"), std::string::npos) << n.why();
  });
}

TEST(NrtTogether, DifferentCallsAreAMismatch) {
  const Standin n;
  on_cores(2, [&](std::uint32_t c) {
    char own[8] = "", all[16] = "";
    EXPECT_EQ(n->nrt_all_gather(static_cast<int>(c), c, 2, 4 + c, own, all), Status::invalid) << n.why();
  });
}

struct Collective {
  nrt::CollectiveKind kind;
  nrt::ReduceKind op;
  float expected;  // on member 1
  std::size_t in, out;
};

class NrtCollectives : public testing::TestWithParam<Collective> {};

TEST_P(NrtCollectives, GiveTheRightNumbersAndTakeTime) {
  const Collective& p = GetParam();
  const Standin n;
  constexpr std::uint32_t members = 4;
  on_cores(members, [&](std::uint32_t c) {
    EXPECT_EQ(n->nrt_cc_global_comm_init(c, c, members), Status::success);
    nrt::Tensor *in = n.tensor(static_cast<int>(c), p.in * 4), *out = n.tensor(static_cast<int>(c), p.out * 4);
    std::vector<float> values(p.in, static_cast<float>(c + 1));
    n->nrt_tensor_write(in, values.data(), 0, p.in * 4);
    std::uint32_t group[] = {0, 1, 2, 3};
    nrt::CommInfo comm{group, c, members, c, members, c};
    nrt::TensorList ins{&in, 1}, outs{&out, 1};
    nrt::ErrorTracker* errors = nullptr;
    n->nrta_error_tracker_create(c, &errors);
    for (int round = 0; round < 2; ++round) {
      nrt::CollectiveContext* context = nullptr;
      ASSERT_EQ(n->nrta_cc_prepare(&comm, &ins, &outs, nrt::NrtDType::f32, p.op, p.kind, &context), Status::success)
          << n.why();
      nrt::Sequence s = 0;
      ASSERT_EQ(n->nrta_cc_schedule(&context, 0, errors, &s), Status::success) << n.why();
      EXPECT_EQ(context, nullptr) << "it is used up";
      for (bool done = false; !done;) {
        ASSERT_EQ(n->nrta_is_completed(s, &done), Status::success);
      }
    }
    const nrt::AsyncError* list = nullptr;
    std::size_t count = 0;
    n->nrta_error_tracker_get_list(errors, &list, &count);
    EXPECT_EQ(count, 0u);
    std::vector<float> result(p.out);
    n->nrt_tensor_read(out, result.data(), 0, p.out * 4);
    if (c == 1) {
      EXPECT_EQ(result.back(), p.expected);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, NrtCollectives,
    testing::Values(Collective{nrt::CollectiveKind::all_reduce, nrt::ReduceKind::add, 10, 1000, 1000},
                    Collective{nrt::CollectiveKind::all_reduce, nrt::ReduceKind::max, 4, 1000, 1000},
                    Collective{nrt::CollectiveKind::all_reduce, nrt::ReduceKind::min, 1, 1, 1},
                    Collective{nrt::CollectiveKind::all_gather, nrt::ReduceKind::add, 4, 100, 400},
                    Collective{nrt::CollectiveKind::reduce_scatter, nrt::ReduceKind::add, 10, 400, 100}));

// Member 1 comes so late that member 0 has given up on the first of two collectives. The first one of either must not
// be matched with the second one of the other.
TEST(NrtTogether, AMemberWhoIsLateForACollectiveDoesNotMeetTheNext) {
  const Standin n;
  setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);  // NOLINT(concurrency-mt-unsafe)
  n->nrt_close();
  ASSERT_EQ(n->nrt_init(nrt::Framework::none, "", ""), Status::success);
  std::atomic<bool> gave_up = false;
  on_cores(2, [&](std::uint32_t c) {
    n->nrt_cc_global_comm_init(c, c, 2);
    nrt::ErrorTracker* errors = nullptr;
    n->nrta_error_tracker_create(c, &errors);
    while (c == 1 && !gave_up) std::this_thread::yield();
    nrt::Tensor* tensors[2];
    nrt::Sequence sequences[2] = {};
    for (int i = 0; i < 2; ++i) {
      tensors[i] = n.tensor(static_cast<int>(c), 4);
      const float value = (c == 0 ? 1.0F : 10.0F) * (i == 0 ? 1.0F : 100.0F);
      n->nrt_tensor_write(tensors[i], &value, 0, 4);
      std::uint32_t group[] = {0, 1};
      nrt::CommInfo comm{group, c, 2, c, 2, c};
      nrt::TensorList list{&tensors[i], 1};
      nrt::CollectiveContext* context = nullptr;
      n->nrta_cc_prepare(&comm, &list, &list, nrt::NrtDType::f32, nrt::ReduceKind::add, nrt::CollectiveKind::all_reduce,
                         &context);
      ASSERT_EQ(n->nrta_cc_schedule(&context, 0, errors, &sequences[i]), Status::success) << n.why();
    }
    const nrt::AsyncError* list = nullptr;
    std::size_t failures = 0;
    for (const nrt::Sequence s : sequences) {
      for (bool done = false; !done; std::this_thread::yield()) n->nrta_is_completed(s, &done);
      gave_up = true;
    }
    n->nrta_error_tracker_get_list(errors, &list, &failures);
    for (int i = 0; i < 2; ++i) {
      if (std::any_of(list, list + failures, [&](const auto& e) { return e.seq_id == sequences[i]; })) continue;
      float sum = 0;
      n->nrt_tensor_read(tensors[i], &sum, 0, 4);
      EXPECT_EQ(sum, i == 0 ? 11.0F : 1100.0F) << "member " << c;
    }
    EXPECT_GE(failures, 1u);
  });
}

TEST(NrtTogether, WrongCollectivesAreRefused) {
  const Standin n;
  nrt::Tensor *a = n.tensor(0, 400), *b = n.tensor(0, 404), *other = n.tensor(1, 400);
  std::uint32_t group[] = {0, 1}, twice[] = {0, 0};
  nrt::CommInfo comm{group, 0, 2, 0, 2, 0};
  nrt::CollectiveContext* context = nullptr;
  const auto prepare = [&](nrt::CommInfo& c, nrt::Tensor* in, nrt::Tensor* out, nrt::NrtDType element,
                           nrt::ReduceKind op) {
    nrt::TensorList ins{&in, 1}, outs{&out, 1};
    return n->nrta_cc_prepare(&c, &ins, &outs, element, op, nrt::CollectiveKind::all_reduce, &context);
  };
  using enum nrt::NrtDType;
  EXPECT_EQ(prepare(comm, a, b, f32, nrt::ReduceKind::add), Status::invalid) << "sizes";
  EXPECT_EQ(prepare(comm, a, other, f32, nrt::ReduceKind::add), Status::invalid) << "cores";
  EXPECT_EQ(prepare(comm, a, a, unknown, nrt::ReduceKind::add), Status::invalid);
  EXPECT_EQ(prepare(comm, a, a, f32, nrt::ReduceKind::fma), Status::invalid);
  comm.replica_group = twice;
  EXPECT_EQ(prepare(comm, a, a, f32, nrt::ReduceKind::add), Status::invalid);
  comm.replica_group = nullptr;
  EXPECT_EQ(prepare(comm, a, a, f32, nrt::ReduceKind::add), Status::invalid);
  comm = {group, 2, 2, 0, 2, 0};
  EXPECT_EQ(prepare(comm, a, a, f32, nrt::ReduceKind::add), Status::invalid);
  EXPECT_EQ(context, nullptr);
  EXPECT_EQ(n->nrta_cc_schedule(&context, 0, nullptr, nullptr), Status::invalid);
  EXPECT_EQ(n->nrta_cc_prepare(nullptr, nullptr, nullptr, f32, nrt::ReduceKind::add, nrt::CollectiveKind::all_reduce,
                               &context),
            Status::invalid);
}

TEST(NrtTogether, SixteenThreadsUseEverythingAtOnce) {
  const Standin n;
  LoadedSample shared(n, 0);
  on_cores(16, [&](std::uint32_t c) {
    const int core = static_cast<int>(c % 4);
    for (int i = 0; i < 20; ++i) {
      nrt::Tensor* t = n.tensor(core, 5000 + c, "of a thread");
      std::vector<char> out(5000 + c, static_cast<char>(c + 1)), in(5000 + c);
      EXPECT_EQ(n->nrt_tensor_write(t, out.data(), 0, out.size()), Status::success);
      EXPECT_EQ(n->nrt_tensor_read(t, in.data(), 0, in.size()), Status::success);
      EXPECT_EQ(in, out);
      if (i % 10 == 0) {
        EXPECT_EQ(n->nrt_execute(shared.model, shared.inputs, shared.outputs), Status::success);
      }
      nrt::Sequence s = 0;
      EXPECT_EQ(n->nrta_tensor_write(t, out.data(), 0, out.size(), 0, nullptr, &s), Status::success);
      for (bool done = false; !done;) {
        ASSERT_EQ(n->nrta_is_completed(s, &done), Status::success);
      }
      n->nrt_tensor_free(&t);
    }
  });
  nrt::MemoryStats stats{};
  n->nrt_get_vnc_memory_stats(1, &stats, sizeof stats, nullptr);
  EXPECT_EQ(stats.bytes_used, 0u);
}

}  // namespace
}  // namespace trellis::device
