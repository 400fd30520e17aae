#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "schedule/collective_traits.h"
#include "schedule/formats/msccl_xml.h"
#include "schedule/formats/msccl_xml_order.h"
#include "schedule/in_place_slices.h"
#include "text/refuse.h"

namespace trellis::schedule {
namespace {

using msccl::XmlStepPosition;
using msccl::XmlStepType;

constexpr std::int64_t most_touches = std::int64_t{1} << 22;  // total chunks that a file's steps may name

Collective collective_of(const std::string& name) {
  if (const CollectiveTraits* known = traits_by_msccl(name)) return known->collective;
  const auto refuse = [&](std::string_view why) { text::refuse("algo: coll=\"{}\": {}", name.substr(0, 40), why); };
  if (name == "custom") refuse("the file does not say what the buffers must hold in the end");
  if (name == "broadcast" || name == "reduce" || name == "gather" || name == "scatter")
    refuse("the file does not say which gpu is the root");
  if (name == "send" || name == "recv" || name == "alltoallv")
    refuse("the file does not say who sends how much to whom");
  refuse("expected allreduce, allgather, reducescatter or alltoall");
  return {};
}

Task task_of(const msccl::XmlFile& file, std::optional<bool> in_place) {
  if (in_place && !(*in_place ? file.in_place : file.out_of_place))
    text::refuse("algo: does not claim to work {} place", *in_place ? "in" : "out of");
  Task task{.operation = {.collective = collective_of(file.collective)}, .ranks = static_cast<Rank>(file.gpus.size())};
  task.operation.in_place = in_place.value_or(!file.out_of_place);
  task.even = true;
  task.pieces = file.chunks;
  if (by_block(task.operation.collective)) {
    if (file.chunks % task.ranks != 0)
      text::refuse("algo: nchunksperloop=\"{}\" for {} gpus: expected a multiple", file.chunks, task.ranks);
    task.pieces = file.chunks / task.ranks;
  }
  check(task);
  return task;
}

// Merges one gpu's thread blocks into one program.
class Unroller {
 public:
  Unroller(const Task& task, Rank rank, const msccl::XmlGpu& gpu)
      : task_(task),
        rank_(rank),
        gpu_(gpu),
        order_(gpu, rank),
        kept_(gpu.blocks.size()),
        sent_(gpu.blocks.size()),
        received_(gpu.blocks.size()) {
    // Each rrs gets scratch chunks of its own. If they were reused, a receive would wait for a send, and a ring of such
    // blocks could deadlock.
    std::int64_t scratch = gpu.scratch;
    for (const msccl::XmlThreadBlock& block : gpu.blocks)
      for (const msccl::XmlStep& step : block.steps)
        if (step.type == XmlStepType::rrs) scratch += step.count;
    if (scratch > std::numeric_limits<std::int32_t>::max())
      text::refuse("gpu {}: needs {} scratch chunks: more than can be numbered", rank, scratch);
    program_.scratch = static_cast<std::int32_t>(scratch);
    passing_ = gpu.scratch;
  }

  Program run() {
    one_owner_each(&msccl::XmlThreadBlock::send, msccl::sends);
    one_owner_each(&msccl::XmlThreadBlock::recv, msccl::receives);
    for (const XmlStepPosition at : order_.steps()) unroll(at);
    return std::move(program_);
  }

 private:
  // Step `step` of a thread block, which became step `ours` of the new program. It is no send, so its data is in place
  // when it has ended.
  struct Kept {
    std::int32_t step, ours;
  };
  struct Reader {
    XmlStepPosition at;
    std::int32_t ours;
  };

  // Each connection must use one thread block per end; otherwise the order of its data would be undefined.
  void one_owner_each(Rank msccl::XmlThreadBlock::*peer, bool (*uses)(XmlStepType)) {
    std::map<std::pair<Rank, std::int32_t>, std::int32_t> owner;
    for (const msccl::XmlThreadBlock& block : gpu_.blocks) {
      if (std::ranges::none_of(block.steps, [&](const msccl::XmlStep& s) { return uses(s.type); })) continue;
      const auto [found, added] = owner.emplace(std::pair(block.*peer, block.channel), block.id);
      if (!added)
        text::refuse("gpu {} tb {}: shares its connection with gpu {} on channel {} with tb {}", rank_, block.id,
                     block.*peer, block.channel, found->second);
    }
  }

  Slice slice(const msccl::BufferOffset& where, std::int32_t count) const {
    return as_output(task_, rank_, {where.offset, count, where.buffer});
  }

  void unroll(XmlStepPosition at) {
    const msccl::XmlThreadBlock& block = gpu_.blocks[at.block];
    const msccl::XmlStep& step = block.steps[at.step];
    const Slice source = slice(step.source, step.count), target = slice(step.target, step.count);
    const Slice passing{passing_, step.count, Buffer::scratch};
    if (step.type == XmlStepType::rrs) passing_ += step.count;
    const auto send = [&](const Slice& from, bool after_own) {
      trellis::schedule::Step s{
          .op = Op::send, .channel = channel(block), .from = from, .end = {block.send, sent_[at.block]++}};
      add(at, s, {}, after_own);
    };
    const auto receive = [&](Op op, const Slice& to, const Slice& from) {
      add(at, {.op = op, .channel = channel(block), .to = to, .from = from, .end = {block.recv, received_[at.block]++}},
          {});
    };
    switch (step.type) {
      case XmlStepType::s:
        send(source, false);
        break;
      case XmlStepType::r:
        receive(Op::recv, target, {});
        break;
      case XmlStepType::rcs:
        receive(Op::recv, target, {}), send(target, true);
        break;
      case XmlStepType::rrs:
        receive(Op::recv_reduce, passing, source), send(passing, true);
        break;
      case XmlStepType::rrc:
        receive(Op::recv_reduce, target, source);
        break;
      case XmlStepType::rrcs:
        receive(Op::recv_reduce, target, source), send(target, true);
        break;
      case XmlStepType::cpy:
        add(at, {.op = Op::copy, .channel = channel(block), .to = target, .from = source}, {});
        break;
      case XmlStepType::re: {
        const Slice sources[] = {source};
        add(at, {.op = Op::reduce, .channel = channel(block), .to = target, .from = target}, sources);
        break;
      }
      case XmlStepType::nop:
        break;
    }
  }

  void must_fit(XmlStepPosition at, const Slice& x) const {
    const std::int64_t size = x.buffer == Buffer::input    ? input_chunks(task_, rank_)
                              : x.buffer == Buffer::output ? output_chunks(task_, rank_)
                                                           : program_.scratch;
    if (x.first >= 0 && x.count > 0 && std::int64_t{x.first} + x.count <= size) return;
    text::refuse("gpu {} tb {} step {}: names {} from {}[{}], of which there are {}", rank_, gpu_.blocks[at.block].id,
                 at.step, x.count, name(x.buffer), x.first, size);
  }

  static std::uint8_t channel(const msccl::XmlThreadBlock& block) {
    return static_cast<std::uint8_t>(std::max(block.channel, 0));
  }

  void add(XmlStepPosition at, trellis::schedule::Step step, std::span<const Slice> further, bool after_own = false) {
    after_.clear();
    if (after_own)
      after_.push_back(kept_[at.block].back().ours);
    else
      wait_for_kept(at);
    if (writes(step.op)) wait_for_readers(at, step.to);
    std::ranges::sort(after_);
    after_.erase(std::unique(after_.begin(), after_.end()), after_.end());
    program_.set_after(step, after_);
    program_.set_further(step, further);
    each_slice(program_, step, [&](const Slice& x, bool) { must_fit(at, x); });
    const auto ours = static_cast<std::int32_t>(program_.steps.size());
    if (sends(step.op)) {
      const Cells base = cells(task_, rank_);
      for (std::int32_t i = 0; i < step.from.count; ++i)
        readers_[base.at(step.from.buffer, std::int64_t{step.from.first} + i)].push_back({at, ours});
    } else {
      kept_[at.block].push_back({at.step, ours});
    }
    program_.steps.push_back(step);
  }

  // Waits for every earlier step except sends, and skips waits that others imply.
  void wait_for_kept(XmlStepPosition at) {
    covered_.assign(gpu_.blocks.size(), 0);
    const auto wait = [&](std::size_t b) {
      // The step itself is not in kept_ yet.
      const auto end = std::ranges::lower_bound(kept_[b], order_.known(at, b), {}, &Kept::step);
      if (end == kept_[b].begin()) return;
      const Kept& last = *(end - 1);
      if (last.step < covered_[b]) return;
      after_.push_back(last.ours);
      const XmlStepPosition there{static_cast<std::int32_t>(b), last.step};
      for (std::size_t c = 0; c < covered_.size(); ++c) covered_[c] = std::max(covered_[c], order_.known(there, c));
    };
    wait(static_cast<std::size_t>(at.block));
    for (std::size_t b = gpu_.blocks.size(); b-- > 0;) wait(b);
  }

  // Waits for earlier sends that read the cells about to be overwritten.
  void wait_for_readers(XmlStepPosition at, const Slice& to) {
    const Cells base = cells(task_, rank_);
    for (std::int32_t i = 0; i < to.count; ++i) {
      const auto found = readers_.find(base.at(to.buffer, std::int64_t{to.first} + i));
      if (found == readers_.end()) continue;
      std::erase_if(found->second, [&](const Reader& reader) {
        const bool before = reader.at != at && order_.known(at, reader.at.block) > reader.at.step;
        if (before) after_.push_back(reader.ours);
        return before;
      });
    }
  }

  const Task& task_;
  Rank rank_;
  const msccl::XmlGpu& gpu_;
  msccl::XmlOrder order_;
  Program program_;
  std::vector<std::vector<Kept>> kept_;  // per block
  std::int32_t passing_ = 0;             // the next scratch chunk for rrs
  std::vector<std::int32_t> sent_, received_;
  std::unordered_map<std::int64_t, std::vector<Reader>> readers_;  // sends by the cell that they read
  std::vector<std::int32_t> after_, covered_;
};

}  // namespace

bool msccl_leaves_place_open(std::string_view xml) {
  const msccl::XmlFile file = msccl::read(xml);
  return file.in_place && file.out_of_place;
}

Schedule import_msccl(std::string_view xml, std::optional<bool> in_place) {
  const msccl::XmlFile file = msccl::read(xml);
  Schedule schedule{.task = task_of(file, in_place), .algorithm = file.name, .programs = {}};
  std::int64_t touches = 0;
  schedule.channels = file.channels;
  for (const msccl::XmlGpu& gpu : file.gpus)
    for (const msccl::XmlThreadBlock& block : gpu.blocks) {
      schedule.channels = std::max(schedule.channels, block.channel + 1);
      for (const msccl::XmlStep& step : block.steps) touches += step.count;
    }
  if (touches > most_touches)
    text::refuse("algo: its steps move {} chunks: at most {} can be followed", touches, most_touches);
  for (Rank r = 0; r < schedule.ranks(); ++r)
    schedule.programs.push_back(Unroller(schedule.task, r, file.gpus[r]).run());
  return schedule;
}

}  // namespace trellis::schedule
