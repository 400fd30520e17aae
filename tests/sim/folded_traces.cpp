// Ranks that do the same share one trace, and take as long as with a trace for each, to the picosecond.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "sim/cluster/workload/chakra.h"
#include "sim/cluster/workload/play.h"
#include "text/protobuf_writer.h"

namespace trellis::sim {
namespace {

using Message = text::ProtobufWriter;

// A small training step: a pipeline whose stages have `data` times `tensor` ranks each.
struct Shape {
  Rank tensor = 2, data = 2, stages = 2;
  Rank ranks() const { return tensor * data * stages; }
};

class RankTrace {
 public:
  RankTrace(const Shape& shape, Rank rank) : shape_(shape), rank_(rank) {
    Message metadata;
    metadata.text(1, "0.0.4");
    add(metadata);
  }

  // Each micro-batch goes forward through the stages, and then each goes back; gradients are summed beside the last
  // backward passes.
  std::string run(int micro_batches) {
    const Rank stage = rank_ / (shape_.tensor * shape_.data), apart = shape_.tensor * shape_.data;
    for (int m = 0; m < micro_batches; ++m) {
      if (stage > 0) message(6, rank_ - apart, rank_, m);
      compute(20 + 5 * static_cast<std::uint64_t>(stage));
      collective(0, 3'000'000, "t", rank_ / shape_.tensor);
      if (stage + 1 < shape_.stages) message(5, rank_, rank_ + apart, m);
    }
    for (int m = 0; m < micro_batches; ++m) {
      if (stage + 1 < shape_.stages) message(6, rank_ + apart, rank_, 100 + m);
      compute(35);
      collective(2, 1'000'000, "t", rank_ / shape_.tensor);
      if (m == 1) collective(7, 40'000'000, "d", rank_ % shape_.tensor + 1000 * stage, false);
      if (stage > 0) message(5, rank_, rank_ - apart, 100 + m);
    }
    collective(0, 4, "", 0);
    return std::move(bytes_);
  }

 private:
  void add(const Message& m) {
    Message framed;
    framed.after_its_size(m.bytes());
    bytes_ += framed.bytes();
  }
  Message node(std::uint64_t type, std::string_view name) {
    Message m;
    m.number(1, ++id_);
    m.text(2, name);
    m.number(3, type);
    if (last_ > 0) m.number(5, last_);
    return m;
  }
  static void number(Message& m, std::string_view name, std::int64_t value) {
    Message a;
    a.text(1, name);
    a.number(9, static_cast<std::uint64_t>(value));
    m.message(10, a);
  }
  void compute(std::uint64_t micros) {
    Message m = node(4, "work");
    m.number(7, micros);
    add(m), last_ = id_;
  }
  void collective(std::int64_t type, std::int64_t size, std::string_view axis, Rank group, bool waits = true) {
    Message m = node(7, "exchange");
    number(m, "comm_type", type), number(m, "comm_size", size);
    Message a;
    a.text(1, "pg_name");
    a.text(29, fmt::format("{}{}", axis, group));
    if (!axis.empty()) m.message(10, a);
    add(m);
    if (waits) last_ = id_;
  }
  void message(std::uint64_t type, Rank from, Rank to, int tag) {
    Message m = node(type, type == 5 ? "send" : "receive");
    number(m, "comm_size", 600'000), number(m, "comm_tag", tag);
    number(m, "comm_src", from), number(m, "comm_dst", to);
    add(m);
    if (type == 6) last_ = id_;
  }

  const Shape& shape_;
  Rank rank_;
  std::string bytes_;
  std::uint64_t id_ = 0, last_ = 0;
};

struct Traces {
  std::vector<std::string> names, bytes;
  std::optional<ExecutionGraph> alike() const {
    return read_alike_chakra("step", names, [&](std::size_t r) { return bytes[r]; });
  }
  ExecutionGraph all() const {
    std::vector<ChakraFile> files;
    for (std::size_t r = 0; r < names.size(); ++r) files.push_back({names[r], bytes[r]});
    return read_chakra("step", files);
  }
};

Traces traces_of(const Shape& shape, int micro_batches = 3) {
  Traces t;
  for (Rank r = 0; r < shape.ranks(); ++r)
    t.names.push_back(fmt::format("step.{}.et", r)), t.bytes.push_back(RankTrace(shape, r).run(micro_batches));
  return t;
}

using Ran = std::vector<std::vector<std::tuple<std::string, Time, Time>>>;

// What each rank does, and when.
Ran by_rank(const Workload& w, const PlayResult& played) {
  Ran all(static_cast<std::size_t>(w.graph->ranks));
  for (std::size_t i = 0; i < w.parts.size(); ++i)
    for (std::uint32_t cell : w.parts[i].cells)
      for (Rank r : w.cells[cell].ranks)
        all[static_cast<std::size_t>(r)].emplace_back(w.parts[i].task->name, played.parts[i].start,
                                                      played.parts[i].end);
  for (auto& own : all) std::ranges::sort(own);
  return all;
}

// Plays the folded workload. none: groups that do the same take different times on this machine.
std::optional<PlayResult> played_folded(const Workload& w, const Machine& machine) {
  try {
    return play(w, machine);
  } catch (const FoldedRanksDiffer&) {
    return {};
  }
}

TEST(FoldedTraces, TakeAsLongAsEachRankByItself) {
  int folds = 0;
  const std::pair<Shape, const char*> cases[] = {{{2, 2, 2}, "switch:8"},      {{2, 4, 2}, "switch:16"},
                                                 {{8, 4, 1}, "switch:32"},     {{4, 4, 4}, "switch:64"},
                                                 {{4, 4, 4}, "torus:4x4x4"},   {{2, 2, 2}, "ring:8"},
                                                 {{8, 4, 1}, "trn1.32xlarge"}, {{8, 4, 2}, "trn1.32xlarge x 2"}};
  for (const auto& [shape, name] : cases) {
    SCOPED_TRACE(fmt::format("{} {} {} on {}", shape.tensor, shape.data, shape.stages, name));
    const Machine machine = machine_named(name);
    const Traces traces = traces_of(shape);
    const auto alike = traces.alike();
    ASSERT_TRUE(alike);
    const auto folded = folded_workload_of(lent(*alike));
    ASSERT_TRUE(folded);
    EXPECT_EQ(folded->cells.size(), static_cast<std::size_t>(shape.stages));
    const Workload all = workload_of(traces.all());
    EXPECT_EQ(workload_of(*alike).parts.size(), all.parts.size());
    const auto a = played_folded(*folded, machine);
    if (!a) continue;  // groups in different places may share different links, and take different times
    ++folds;
    const PlayResult b = play(all, machine);
    EXPECT_EQ(a->time, b.time);
    EXPECT_EQ(by_rank(*folded, *a), by_rank(all, b));
    EXPECT_EQ(a->exposed_most, b.exposed_most);
    EXPECT_DOUBLE_EQ(a->exposed_mean, b.exposed_mean);
  }
  EXPECT_GE(folds, 5);
}

TEST(FoldedTraces, RanksThatDifferInAnythingAreApart) {
  const Shape shape{.tensor = 2, .data = 4, .stages = 2};
  Traces traces = traces_of(shape);
  // One rank computes longer: its groups, and what exchanges with them, are no longer like the others.
  const auto at = traces.bytes[11].find("work");
  ASSERT_NE(at, std::string::npos);
  const auto micros = traces.bytes[11].find('\x38', at);
  ASSERT_NE(micros, std::string::npos);
  traces.bytes[11][micros + 1] += 9;
  const Machine machine = machine_named("torus:4x4");
  const Workload all = workload_of(traces.all());
  const auto alike = traces.alike();
  if (alike) {
    const auto folded = folded_workload_of(lent(*alike));
    ASSERT_TRUE(folded);
    EXPECT_GT(folded->cells.size(), 2U);
    const auto a = played_folded(*folded, machine);
    EXPECT_EQ(a ? a->time : play(all, machine).time, play(all, machine).time);
  }
  EXPECT_NE(play(all, machine).time, play(workload_of(traces_of(shape).all()), machine).time);
}

TEST(FoldedTraces, FaultsAreLeftToWhoReadsAll) {
  Traces traces = traces_of({2, 2, 2});
  traces.bytes[5].pop_back();
  EXPECT_FALSE(traces.alike());
  traces = traces_of({2, 2, 2});
  traces.bytes[7] = traces.bytes[3];  // the trace of rank 7 says that it is rank 3's
  EXPECT_FALSE(traces.alike());
  EXPECT_THROW(traces.all(), std::invalid_argument);
}

TEST(FoldedTraces, WhereRanksAreNotAlikeTheMachineSaysSo) {
  const Traces traces = traces_of({2, 4, 2});
  const auto folded = folded_workload_of(std::make_shared<const ExecutionGraph>(*traces.alike()));
  MachineSpec slow = machine_named("torus:4x4").spec();
  what_if(slow, "slow:0-1:0.5");
  EXPECT_THROW(play(*folded, Machine(slow)), FoldedRanksDiffer);
  EXPECT_THROW(play(*folded, machine_named("torus:4x4"), {.noise = 1}), FoldedRanksDiffer);
}

}  // namespace
}  // namespace trellis::sim
