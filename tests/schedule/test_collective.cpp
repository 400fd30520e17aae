// What collectives require every chunk to hold afterwards, against their well-known definitions.
#include <gtest/gtest.h>

#include "schedule/collective.h"
#include "tests/why.h"

namespace trellis::schedule {
namespace {

using enum Collective;

Task task(Collective c, Rank ranks, std::int32_t pieces = 1) {
  return {.operation = {.collective = c}, .ranks = ranks, .pieces = pieces};
}

TEST(Collectives, HaveNamesThatReadBack) {
  EXPECT_EQ(collectives().size(), 14u);
  for (Collective c : collectives()) EXPECT_EQ(collective_named(name(c)), c);
  EXPECT_THROW(collective_named("allreduce"), std::invalid_argument);
}

TEST(Collectives, SizeTheirBuffers) {
  EXPECT_EQ(input_chunks(task(all_reduce, 4, 8), 0), 8);
  EXPECT_EQ(input_chunks(task(reduce_scatter, 4, 2), 3), 8);
  EXPECT_EQ(output_chunks(task(reduce_scatter, 4, 2), 3), 2);
  EXPECT_EQ(input_chunks(task(all_gather, 4, 2), 3), 2);
  EXPECT_EQ(output_chunks(task(all_gather, 4, 2), 3), 8);
  EXPECT_EQ(input_chunks(task(broadcast, 4), 0), 1);
  EXPECT_EQ(input_chunks(task(broadcast, 4), 1), 0);
  EXPECT_EQ(output_chunks(task(gather, 4), 0), 4);
  EXPECT_EQ(output_chunks(task(gather, 4), 1), 0);
}

TEST(Collectives, WantWhatTheirNamesSay) {
  using Form = Wanted::Form;
  const Wanted a = wanted(task(all_to_all, 4, 2), 3, 5);  // rank 3, block 2, piece 1
  EXPECT_EQ(a.form, Form::copy);
  EXPECT_EQ(a.source, 2);
  EXPECT_EQ(a.chunk, 3 * 2 + 1);
  const Wanted r = wanted(task(reduce_scatter, 4, 2), 3, 1);
  EXPECT_EQ(r.form, Form::sum);
  EXPECT_EQ(r.chunk, 7);
  const Wanted g = wanted(task(all_gather, 4, 2), 0, 5);
  EXPECT_EQ(g.source, 2);
  EXPECT_EQ(g.chunk, 1);
}

TEST(Collectives, ShareMemoryInPlaceAsNcclDoes) {
  Task t = task(reduce_scatter, 4, 2);
  t.operation.in_place = true;
  EXPECT_EQ(cells(t, 3).at(Buffer::output, 0), cells(t, 3).at(Buffer::input, 6));
  t = task(all_gather, 4, 2);
  t.operation.in_place = true;
  EXPECT_EQ(cells(t, 2).at(Buffer::input, 1), cells(t, 2).at(Buffer::output, 5));
  t = task(broadcast, 4);
  t.operation.in_place = true;
  EXPECT_EQ(cells(t, 1).at(Buffer::output, 0), 0);
  t.operation.in_place = false;
  EXPECT_EQ(cells(t, 0).at(Buffer::output, 0), 1);
}

TEST(Collectives, TellWhichChunksAreEquallyLarge) {
  const Task even = task(all_gather, 4, 2);
  EXPECT_EQ(kind_of_output(even, 0, 5), kind_of_input(even, 2, 1));
  EXPECT_EQ(kind_of_output(even, 0, 5), kind_of_output(even, 0, 1));
  const Task uneven = task(all_gather_v, 4, 2);
  EXPECT_EQ(kind_of_output(uneven, 0, 5), kind_of_input(uneven, 2, 1));
  EXPECT_NE(kind_of_output(uneven, 0, 5), kind_of_output(uneven, 0, 1));
  const Task pairs = task(all_to_all_v, 4);
  EXPECT_EQ(kind_of_input(pairs, 1, 3), kind_of_output(pairs, 3, 1));
  EXPECT_NE(kind_of_input(pairs, 1, 3), kind_of_output(pairs, 1, 3));
}

TEST(Collectives, RefuseNonsenseWithTheValue) {
  const auto complaint = [](const Task& t) { return why([&] { check(t); }); };
  EXPECT_NE(complaint(task(all_reduce, 0)).find("0 ranks"), std::string::npos);
  EXPECT_NE(complaint(task(all_reduce, 4, -3)).find("-3 pieces"), std::string::npos);
  Task t = task(broadcast, 4);
  t.operation.root = 4;
  EXPECT_NE(complaint(t).find("root 4"), std::string::npos);
  t = task(permute, 4);
  t.operation.pairs = {{0, 1}, {2, 1}};
  EXPECT_NE(complaint(t).find("target 1 is given twice"), std::string::npos);
  t.operation.pairs = {{0, 9}};
  EXPECT_NE(complaint(t).find("9"), std::string::npos);
  t = task(all_gather, 1 << 20, 1 << 20);
  EXPECT_NE(complaint(t).find("chunks"), std::string::npos);
}

}  // namespace
}  // namespace trellis::schedule
