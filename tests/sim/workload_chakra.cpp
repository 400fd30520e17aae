#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "sim/cluster/workload/chakra.h"
#include "sim/cluster/workload/play.h"
#include "tests/why.h"
#include "text/protobuf_writer.h"

namespace trellis::sim {
namespace {

using Message = text::ProtobufWriter;

// Writes a trace, node by node.
class Trace {
 public:
  Trace() {
    Message metadata;
    metadata.text(1, "0.0.4");
    add(metadata);
  }

  struct Node {
    std::uint64_t id = 0, type = 4;
    std::vector<std::uint64_t> after = {};
    std::uint64_t micros = 0;
    std::vector<std::pair<std::string, std::int64_t>> numbers = {};
    std::string group = {};
  };

  Trace& node(const Node& n) {
    Message m;
    m.number(1, n.id);
    m.text(2, "node" + std::to_string(n.id));
    m.number(3, n.type);
    for (std::uint64_t id : n.after) m.number(5, id);
    if (n.micros > 0) m.number(7, n.micros);
    for (const auto& [name, value] : n.numbers) {
      Message attribute;
      attribute.text(1, name);
      attribute.number(9, static_cast<std::uint64_t>(value));
      m.message(10, attribute);
    }
    if (!n.group.empty()) {
      Message attribute;
      attribute.text(1, "pg_name");
      attribute.text(29, n.group);
      m.message(10, attribute);
    }
    add(m);
    return *this;
  }

  std::string bytes;

 private:
  void add(const Message& m) {
    Message framed;
    framed.after_its_size(m.bytes());
    bytes += framed.bytes();
  }
};

Workload read(const std::vector<std::string>& ranks) {
  std::vector<ChakraFile> files;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ranks.size(); ++i) names.push_back("step." + std::to_string(i) + ".et");
  for (std::size_t i = 0; i < ranks.size(); ++i) files.push_back({names[i], ranks[i]});
  return workload_of(read_chakra("step", files));
}

std::string fault(const std::vector<std::string>& ranks) {
  return why([&] { read(ranks); });
}

TEST(Chakra, ReadsNodesAndTheirAttributes) {
  const std::string bytes = Trace()
                                .node({.id = 7, .micros = 12})
                                .node({.id = 300,
                                       .type = 7,
                                       .after = {7},
                                       .numbers = {{"comm_type", 2}, {"comm_size", 1 << 20}, {"is_cpu_op", 0}},
                                       .group = "tp"})
                                .bytes;
  const auto nodes = read_chakra_nodes({"a.et", bytes});
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].micros, 12U);
  EXPECT_EQ(nodes[0].offset, 9U);
  EXPECT_EQ(nodes[1].id, 300U);
  EXPECT_EQ(nodes[1].type, ChakraNode::Type::collective);
  EXPECT_EQ(nodes[1].after, std::vector<std::uint64_t>{7});
  EXPECT_EQ(nodes[1].comm_type, 2);
  EXPECT_EQ(nodes[1].comm_size, 1 << 20);
  EXPECT_EQ(nodes[1].group, "tp");
}

// Dependencies may be packed into one field of bytes, and values may have any type of number.
TEST(Chakra, ReadsPackedListsAndOtherNumbers) {
  Message packed;
  packed.number(1, 9);
  packed.text(4, std::string("\x01\xac\x02", 3));
  packed.number(3, 4);
  Message real;
  real.text(1, "num_ops");
  real.real(3, 5e9);
  packed.message(10, real);
  Message zigzag;
  zigzag.text(1, "tensor_size");
  zigzag.number(17, 2 * 640);
  packed.message(10, zigzag);
  std::string bytes = Trace().bytes;
  bytes += static_cast<char>(packed.bytes().size());
  bytes += packed.bytes();
  const auto nodes = read_chakra_nodes({"a.et", bytes});
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].after, (std::vector<std::uint64_t>{1, 300}));
  EXPECT_EQ(nodes[0].operations, 5'000'000'000);
  EXPECT_EQ(nodes[0].tensor_bytes, 640);
}

TEST(Chakra, CollectivesOfAGroupBelongTogether) {
  std::vector<std::string> ranks;
  for (int r = 0; r < 4; ++r)
    ranks.push_back(Trace()
                        .node({.id = 0, .micros = 10})
                        .node({.id = 1,
                               .type = 7,
                               .after = {0},
                               .numbers = {{"comm_type", 2}, {"comm_size", 1000}},
                               .group = r < 2 ? "a" : "b"})
                        .node({.id = 2, .type = 7, .after = {1}, .numbers = {{"comm_type", 0}, {"comm_size", 4000}}})
                        .bytes);
  const Workload w = read(ranks);
  ASSERT_EQ(w.parts.size(), 7U);
  EXPECT_EQ(w.parts[4].members, (std::vector<Rank>{0, 1}));
  EXPECT_EQ(w.parts[4].task->bytes, 2000);
  EXPECT_EQ(w.parts[5].members, (std::vector<Rank>{2, 3}));
  EXPECT_TRUE(w.parts[6].members.empty());
  EXPECT_EQ(w.parts[6].after, (std::vector<std::uint32_t>{4, 5}));
  const PlayResult p = play(w, machine_named("ring:4"));
  EXPECT_EQ(p.parts[4].start, 10 * us);
  EXPECT_EQ(p.parts[6].end, p.time);
}

TEST(Chakra, SendsMeetReceivesAndOneThingIsComputedAtATime) {
  const std::vector<std::string> ranks = {
      Trace()
          .node({.id = 1, .micros = 5})
          .node({.id = 2, .micros = 5})
          .node(
              {.id = 3, .type = 5, .after = {2}, .numbers = {{"comm_size", 50'000}, {"comm_dst", 1}, {"comm_tag", 4}}})
          .bytes,
      Trace()
          .node({.id = 1, .type = 6, .numbers = {{"comm_size", 50'000}, {"comm_src", 0}, {"comm_tag", 4}}})
          .node({.id = 2, .after = {1}, .micros = 3})
          .bytes};
  const PlayResult p = play(read(ranks), machine_named("ring:2"));
  EXPECT_EQ(p.time, 10 * us + us + 500 * ns + 3 * us);
}

// Around a ring, each rank sends before it receives.
TEST(Chakra, ASendWaitsForNoReceiver) {
  std::vector<std::string> ranks;
  for (int r = 0; r < 4; ++r)
    ranks.push_back(
        Trace()
            .node({.id = 1, .type = 5, .numbers = {{"comm_size", 50'000}, {"comm_dst", (r + 1) % 4}}})
            .node({.id = 2, .type = 6, .after = {1}, .numbers = {{"comm_size", 50'000}, {"comm_src", (r + 3) % 4}}})
            .bytes);
  EXPECT_EQ(play(read(ranks), machine_named("ring:4")).time, us + 500 * ns);
  ranks[2] = Trace().bytes;
  EXPECT_EQ(fault(ranks), "step.1.et, byte 9: node 1 (node1): nobody receives it");
}

TEST(Chakra, FaultsNameTheByte) {
  const std::string good = Trace().node({.id = 1, .micros = 5}).bytes;
  EXPECT_EQ(fault({good}), "");
  EXPECT_EQ(fault({""}), "step.0.et, byte 0: nothing there: expected a trace's metadata");
  EXPECT_EQ(fault({good.substr(0, good.size() - 1)}), "step.0.et, byte 8: a message of 13 bytes where 12 are left");
  EXPECT_EQ(fault({good + "\xff"}), "step.0.et, byte 22: ends within a number");
  std::string other = good;
  other[5] = '3';
  EXPECT_EQ(fault({other}), "step.0.et, byte 1: version '0.3.4': expected 0.0.4");
  EXPECT_EQ(fault({Trace().node({.id = 1, .type = 9}).bytes}), "step.0.et, byte 18: node type 9: expected 1 to 7");
  EXPECT_EQ(fault({Trace().node({.id = 1, .after = {5}}).bytes}),
            "step.0.et, byte 9: node 1 (node1): waits for node 5, which is not there");
  EXPECT_EQ(fault({Trace().node({.id = 1, .after = {1}}).bytes}),
            "step.0.et, byte 9: node 1 (node1): waits for itself, by way of others");
  EXPECT_EQ(fault({Trace().node({.id = 1}).node({.id = 1}).bytes}),
            "step.0.et, byte 21: node 1 (node1): the id of an earlier node");
}

TEST(Chakra, RanksMustAgree) {
  const auto collective = [](std::int64_t type, std::int64_t size) {
    return Trace().node({.id = 1, .type = 7, .numbers = {{"comm_type", type}, {"comm_size", size}}}).bytes;
  };
  EXPECT_EQ(fault({collective(0, 64), collective(0, 64)}), "");
  EXPECT_EQ(fault({collective(0, 64), collective(0, 65)}),
            "step.1.et, byte 9: node 1 (node1): type 0 of 65 bytes, where node 1 of rank 0 has type 0 of 64");
  EXPECT_EQ(fault({collective(0, 64), Trace().bytes}), "step.0.et, byte 9: node 1 (node1): 1 of 2 ranks come to it");
  EXPECT_EQ(fault({collective(12, 64)}), "step.0.et, byte 9: node 1 (node1): comm_type 12: expected 0 to 9");
}

}  // namespace
}  // namespace trellis::sim
