// The groups of ranks, against values published for NxD Core, and what holds for every mesh.
#include "train/mesh/mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/why.h"

namespace trellis::train {
namespace {

Group range(Rank first, Rank end, Rank step = 1) {
  Group g;
  for (Rank r = first; r < end; r += step) g.push_back(r);
  return g;
}

TEST(Mesh, GroupsOf128Ranks) {
  const Mesh mesh({.pipeline = 2, .data = 2, .context = 4, .tensor = 8});
  EXPECT_EQ(mesh.groups(Axis::context)[0], (Group{0, 8, 16, 24}));
  EXPECT_EQ(mesh.groups(Axis::context)[8], (Group{32, 40, 48, 56}));
  EXPECT_EQ(mesh.groups(Axis::data)[0], (Group{0, 32}));
  EXPECT_EQ(mesh.groups(Axis::pipeline)[0], (Group{0, 64}));
  EXPECT_EQ(mesh.groups(Axis::sharding)[0], range(0, 64, 8));
  EXPECT_EQ(mesh.groups(Axis::sharding)[1], range(1, 64, 8));
  EXPECT_EQ(mesh.groups(Axis::sharding)[8], range(64, 128, 8));
  EXPECT_EQ(mesh.groups(Axis::tensor)[1], range(8, 16));
}

TEST(Mesh, Trn1StridesTensorGroupsOfFour) {
  const Mesh mesh({.data = 16, .tensor = 4}, Wiring::trn1, 32);
  const Groups tensor = mesh.groups(Axis::tensor);
  EXPECT_EQ(tensor[0], (Group{0, 8, 16, 24}));
  EXPECT_EQ(tensor[1], (Group{1, 9, 17, 25}));
  EXPECT_EQ(tensor[7], (Group{7, 15, 23, 31}));
  Group first = range(0, 8);
  for (Rank r : range(32, 40)) first.push_back(r);
  EXPECT_EQ(mesh.groups(Axis::data)[0], first);
}

TEST(Mesh, Logic2PairsRowsOfANode) {
  const Mesh mesh({.pipeline = 2, .tensor = 32}, Wiring::logic2);
  Group outer = range(0, 16), inner = range(16, 48);
  for (Rank r : range(48, 64)) outer.push_back(r);
  EXPECT_EQ(mesh.groups(Axis::tensor)[0], outer);
  // Rows 1 and 2, each of 16 ranks.
  EXPECT_EQ(mesh.groups(Axis::tensor)[1], inner);
  // A pipeline group joins equal positions of the tensor groups, so its first stage can have the higher rank.
  EXPECT_EQ(mesh.groups(Axis::pipeline)[16], (Group{48, 32}));
}

TEST(Mesh, CopiesOfHeadsLieApartOnTrn1AndTogetherElsewhere) {
  EXPECT_EQ(Mesh({.tensor = 32}).kv_groups(4)[0], (Group{0, 1, 2, 3}));
  const Mesh trn1({.data = 8, .tensor = 4}, Wiring::trn1);
  EXPECT_EQ(trn1.kv_groups(2)[0], (Group{0, 16}));
  EXPECT_THROW(Mesh({.tensor = 4}).kv_groups(3), std::invalid_argument);
}

TEST(Mesh, ExpertsDivideDataAndContextAgain) {
  const Mesh mesh({.data = 4, .context = 1, .tensor = 2, .expert = 2});
  EXPECT_EQ(mesh.groups(Axis::expert_model), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(mesh.groups(Axis::expert_data), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(Mesh, EachAxisDividesAllRanks) {
  const Mesh meshes[] = {Mesh({.pipeline = 3, .data = 4, .context = 2, .tensor = 2, .expert = 4}),
                         Mesh({.pipeline = 2, .data = 16, .context = 2, .tensor = 4}, Wiring::trn1),
                         Mesh({.pipeline = 2, .data = 2, .tensor = 8}, Wiring::logic2)};
  for (const Mesh& mesh : meshes)
    for (Axis axis : {Axis::tensor, Axis::data, Axis::pipeline, Axis::context, Axis::expert_model, Axis::expert_data,
                      Axis::sharding}) {
      Group all;
      for (const Group& group : mesh.groups(axis))
        for (Rank r : group) {
          all.push_back(r);
          EXPECT_EQ(mesh.group(axis, r), group) << name(axis);
        }
      std::ranges::sort(all);
      EXPECT_EQ(all, range(0, mesh.ranks())) << name(axis);
    }
}

TEST(Mesh, RefusesWithFieldAndExpectation) {
  const auto said = [](const MeshShape& shape, Wiring wiring) { return why([&] { const Mesh mesh(shape, wiring); }); };
  EXPECT_EQ(said({.tensor = 0}, Wiring::plain), "tensor_parallel_size is 0: expected at least 1");
  EXPECT_EQ(said({.data = 8, .tensor = 2}, Wiring::trn1),
            "tensor_parallel_size is 2: expected 4 for the strided groups of trn1");
  EXPECT_EQ(said({.data = 4, .expert = 3}, Wiring::plain),
            "expert_parallel_size is 3: expected a divisor of data x context = 4");
  EXPECT_EQ(said({.tensor = 8}, Wiring::logic2),
            "8 ranks: expected a multiple of 16, two tensor groups a node, with logic2");
}

}  // namespace
}  // namespace trellis::train
