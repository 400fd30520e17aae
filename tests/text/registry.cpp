#include "text/registry.h"

#include <gtest/gtest.h>

#include "tests/why.h"

namespace trellis::text {
namespace {

struct Fruit {
  std::string name;
  int weight = 0;
};

struct Path {
  std::string path;
};

Registry<Fruit> fruits() {
  Registry<Fruit> all("fruit");
  all.add({"pear", 150});
  all.add({"apple", 120});
  return all;
}

TEST(Registry, EntriesAreFoundByNameAndListedInOrder) {
  const Registry<Fruit> all = fruits();
  EXPECT_EQ(all.named("pear").weight, 150);
  EXPECT_EQ(all.find("apple")->weight, 120);
  EXPECT_EQ(all.find("fig"), nullptr);
  EXPECT_EQ(all.names(), (std::vector<std::string>{"apple", "pear"}));
  EXPECT_EQ(all.entries().size(), 2u);
}

TEST(Registry, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const Registry<Fruit> all = fruits();
  EXPECT_EQ(why([&] { all.named("fig"); }), "no fruit is called 'fig': expected one of apple, pear");
  EXPECT_EQ(why([&] { all.named("", "dessert.fruit is"); }), "dessert.fruit is '': expected one of apple, pear");
}

TEST(Registry, ASecondOfANameIsRefused) {
  Registry<Fruit> all = fruits();
  EXPECT_EQ(why<std::logic_error>([&] { all.add({"pear", 1}); }), "fruit 'pear' is registered twice");
  EXPECT_EQ(all.named("pear").weight, 150);
}

TEST(Registry, ANameMayBeAnotherMember) {
  Registry<Path> all("command", &Path::path);
  all.add({"schedule list"});
  EXPECT_EQ(all.named("schedule list").path, "schedule list");
}

}  // namespace
}  // namespace trellis::text
