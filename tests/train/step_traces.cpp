// A step as Chakra traces: how other programs read them, and what they say of a step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "schedule/graph/match_exchanges.h"
#include "sim/cluster/workload/chakra.h"
#include "tests/train/pipelined.h"
#include "text/number_parsing.h"
#include "train/whole/chakra.h"
#include "train/whole/check.h"
#include "train/whole/graph.h"

namespace trellis::train {
namespace {

// Chakra's own reader takes each attribute from one field of a message, waits for data_deps alone, and has process
// groups by number, whose ranks stand in a file beside the traces.
TEST(StepTraces, AreAsAstraSimReadsThem) {
  const std::vector<RankStep> stages = classes_of(pipelined(4, 2, 1, "1f1b"), 16);
  const std::string trace = chakra_trace(stages, 5), groups = chakra_groups(stages);
  const auto attribute = [](std::string_view name, std::uint32_t field) {
    return fmt::format("\x0a{}{}{}", static_cast<char>(name.size()), name, static_cast<char>(field << 3));
  };
  EXPECT_NE(trace.find(attribute("num_ops", 9)), trace.npos);
  EXPECT_NE(trace.find(attribute("tensor_size", 13)), trace.npos);
  EXPECT_NE(trace.find(attribute("comm_src", 7)), trace.npos);
  EXPECT_NE(trace.find(attribute("comm_dst", 7)), trace.npos);
  EXPECT_NE(trace.find(attribute("comm_tag", 7)), trace.npos);
  for (const sim::ChakraNode& n : sim::read_chakra_nodes({"a", trace})) {
    if (n.type != sim::ChakraNode::Type::collective) continue;
    const auto number = text::number<int>(n.group, 1, 1000);
    ASSERT_TRUE(number) << n.group;
    const std::size_t at = groups.find(fmt::format("\"{}\": [", *number));
    ASSERT_NE(at, groups.npos) << groups;
    const std::size_t begin = groups.find('[', at) + 1;
    const std::string ranks = fmt::format(" {},", groups.substr(begin, groups.find(']', at) - begin));
    EXPECT_NE(ranks.find(" 5,"), ranks.npos) << ranks;
  }
}

// What experts exchange has one size and one kind in the step's text and in its traces.
TEST(StepTraces, HaveTheExchangesOfExperts) {
  StepConfig c = pipelined(1, 1, 1);
  c.model.architecture = "mixtral";
  c.experts = {.experts = 4, .top_k = 2};
  c.strategy.expert = 2;
  const std::vector<RankStep> stages = classes_of(c, 4);
  std::vector<std::string> traces, names;
  for (Rank r = 0; r < 4; ++r) traces.push_back(chakra_trace(stages, r)), names.push_back(std::to_string(r));
  std::vector<sim::ChakraFile> files;
  for (std::size_t r = 0; r < 4; ++r) files.push_back({names[r], traces[r]});
  using schedule::Collective;
  const auto exchanges = [](const sim::Workload& w) {
    std::multiset<std::tuple<Collective, std::size_t, double>> all;
    for (const sim::WorkloadTask& p : w.parts)
      if (!p.computes)
        all.emplace(p.operation().collective,
                    p.members.empty() ? static_cast<std::size_t>(w.graph->ranks) : p.members.size(), p.task->bytes);
    return all;
  };
  const auto written = exchanges(sim::workload_of(graph_of(stages)));
  EXPECT_EQ(exchanges(sim::workload_of(sim::read_chakra("step", files))), written);
  EXPECT_TRUE(std::ranges::any_of(written, [](const auto& e) { return std::get<0>(e) == Collective::all_to_all; }));
}

// A ring's shift is a send to the next rank and a receipt from the one before, beside computation: as many bytes as the
// step's text says, and no process group of its own.
TEST(StepTraces, HaveARingsShiftsAsMessages) {
  for (const Rank context : {2, 4}) {
    StepConfig c = pipelined(1, 1, 1);
    c.strategy.context = context, c.seq_length = 32;
    const std::vector<RankStep> stages = classes_of(c, context);
    double shifted = 0;
    std::size_t shifts = 0;
    for (const Operation& o : stages[0].program.operations)
      if (o.kind == Operation::Kind::exchange && o.exchange.kind == Exchange::Kind::shift)
        shifted += stages[0].program.bytes_exchanged(o), ++shifts;
    ASSERT_GT(shifts, 0U);
    std::vector<std::string> traces, names;
    for (Rank r = 0; r < context; ++r) traces.push_back(chakra_trace(stages, r)), names.push_back(std::to_string(r));
    std::vector<sim::ChakraFile> files;
    for (std::size_t r = 0; r < traces.size(); ++r) files.push_back({names[r], traces[r]});
    std::size_t messages_read = 0;
    double read = 0;
    const schedule::ExecutionGraph graph = sim::read_chakra("step", files);
    for (const schedule::RankClass& each : graph.classes)
      for (const schedule::GraphTask& t : each.tasks)
        if (t.kind == schedule::GraphTask::Kind::collective &&
            t.operation.collective == schedule::Collective::send_recv)
          ++messages_read, read += t.bytes;
    EXPECT_EQ(messages_read, 2 * shifts * traces.size()) << "at both ends";
    EXPECT_EQ(read, 2 * shifted * context);
    EXPECT_EQ(schedule::match(graph).fault, "");
    bool beside = false;  // a computation does not wait for the messages before it
    std::set<std::uint64_t> messages;
    for (const sim::ChakraNode& n : sim::read_chakra_nodes({"0", traces[0]})) {
      const bool message = n.type == sim::ChakraNode::Type::send || n.type == sim::ChakraNode::Type::receive;
      if (message) messages.insert(n.id);
      if (n.type == sim::ChakraNode::Type::compute && !messages.empty())
        beside = beside || std::ranges::none_of(n.after, [&](auto id) { return messages.contains(id); });
    }
    EXPECT_TRUE(beside);
  }
}

}  // namespace
}  // namespace trellis::train
