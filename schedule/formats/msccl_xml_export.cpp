#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "schedule/collective_traits.h"
#include "schedule/formats/msccl_xml.h"
#include "schedule/formats/msccl_xml_file.h"
#include "schedule/proof/step_wiring.h"
#include "text/refuse.h"

namespace trellis::schedule {
namespace {

using msccl::XmlStepType;

std::string collective_name(Collective c) {
  if (const std::string_view known = traits(c).msccl; !known.empty()) return std::string(known);
  if (rooted(c)) text::refuse("{}: an MSCCL file can't say which rank is the root", name(c));
  if (uneven(c)) text::refuse("{}: an MSCCL file knows chunks of one size only", name(c));
  text::refuse("{}: MSCCL files have no such collective", name(c));
}

// Each rank's steps in one valid execution order. MSCCL connections deliver in order; listing sends and receives in
// this order makes both ends agree. A thread block runs its steps one after another, so they are sorted by the length
// of the longest chain of steps before them: none waits behind one that can only start later. Of equal ones, sends come
// first, since a block goes on while its send is on the way.
std::vector<std::vector<std::int32_t>> running_order(const Schedule& s, const StepWiring& wiring) {
  using Moment = std::tuple<std::int32_t, bool, std::int64_t>;  // length of that chain; no send; when the step ran
  std::vector<Moment> moments(wiring.count());
  std::int64_t now = 0;
  const auto chain = [&](StepId id) {
    const Rank rank = wiring.rank(id);
    const Program& program = s.programs[rank];
    std::int32_t longest = 0;
    for (const std::int32_t before : program.after(program.steps[wiring.step(id)]))
      longest = std::max(longest, std::get<0>(moments[wiring.id(rank, before)]) + 1);
    return longest;
  };
  const auto local = [&](StepId id) { moments[id] = {chain(id), true, now++}; };
  const auto transfer = [&](StepId send, StepId receive) {
    const std::int32_t longest = std::max(chain(send), chain(receive));
    moments[send] = {longest, false, now};
    moments[receive] = {longest, true, now++};
  };
  if (!DataflowExecutor(s, wiring).run(local, transfer))
    throw std::invalid_argument("some step of the schedule can never start");
  std::vector<std::vector<std::int32_t>> order(s.programs.size());
  for (Rank r = 0; r < s.ranks(); ++r) {
    std::vector<std::int32_t>& mine = order[r];
    mine.resize(s.programs[r].steps.size());
    std::iota(mine.begin(), mine.end(), 0);
    std::ranges::sort(mine, {}, [&](std::int32_t step) { return moments[wiring.id(r, step)]; });
  }
  return order;
}

// Writes one rank's program as thread blocks. On each channel, send peers and receive peers are paired in order of
// first use; local steps get a block of their own. Since blocks run in execution order, they can't deadlock.
class Folder {
 public:
  Folder(const Schedule& s, Rank rank) : program_(s.programs[rank]), s_(s), rank_(rank), last_(program_.steps.size()) {
    gpu_.inputs = static_cast<std::int32_t>(input_chunks(s.task, rank));
    gpu_.outputs = static_cast<std::int32_t>(output_chunks(s.task, rank));
    gpu_.scratch = program_.scratch;
  }

  msccl::XmlGpu run(const std::vector<std::int32_t>& order) {
    for (const std::int32_t i : order) assign(program_.steps[i]);
    if (gpu_.blocks.size() > msccl::most_blocks)
      text::refuse("gpu {} would take {} thread blocks: an MSCCL file may have {}", rank_, gpu_.blocks.size(),
                   msccl::most_blocks);
    for (const std::int32_t i : order) fold(i);
    return std::move(gpu_);
  }

 private:
  struct Place {
    std::int32_t block = -1, step = -1;
  };

  [[noreturn]] void refuse(std::int32_t i, std::string_view why) const {
    text::refuse("{}: {}", where(s_, rank_, i), why);
  }

  void fold(std::int32_t i) {
    const Step& step = program_.steps[i];
    const auto further = program_.further(step);
    const std::int32_t block = block_of(step);
    wait(block, i);
    switch (step.op) {
      case Op::send:
        if (step.second != End{}) refuse(i, "an MSCCL step sends to one gpu only");
        put(block, XmlStepType::s, step.from, step.from);
        break;
      case Op::recv:
        put(block, XmlStepType::r, step.to, step.to);
        break;
      case Op::recv_reduce:
        put(block, XmlStepType::rrc, step.from, step.to);
        break;
      case Op::copy:
        put(block, XmlStepType::cpy, step.from, step.to);
        for (const Slice& also : further) put(block, XmlStepType::cpy, step.from, also);
        break;
      case Op::reduce: {
        if (further.size() != 1) refuse(i, "an MSCCL step adds up two chunks: the sum would be rounded more than once");
        const bool other_way = same_cells(step.to, further[0]);
        if (!other_way && !same_cells(step.to, step.from)) put(block, XmlStepType::cpy, step.from, step.to);
        put(block, XmlStepType::re, other_way ? step.from : further[0], step.to);
        break;
      }
    }
    last_[i] = {block, static_cast<std::int32_t>(gpu_.blocks[block].steps.size()) - 1};
  }

  bool same_cells(const Slice& a, const Slice& b) const {
    const Cells base = cells(s_.task, rank_);
    return base.at(a.buffer, a.first) == base.at(b.buffer, b.first);
  }

  enum class Use : std::uint8_t { send, receive, local };
  static Use use(const Step& step) {
    if (sends(step.op)) return Use::send;
    return receives(step.op) ? Use::receive : Use::local;
  }
  std::int32_t& block_of(const Step& step) { return block_[{step.channel, use(step), step.end.peer}]; }

  void assign(const Step& step) {
    const auto [found, added] = block_.try_emplace({step.channel, use(step), step.end.peer}, -1);
    if (!added) return;
    // The next block of the channel that has no peer for this direction yet.
    for (msccl::XmlThreadBlock& block : gpu_.blocks) {
      if (block.channel != step.channel || use(step) == Use::local || (block.send < 0 && block.recv < 0)) continue;
      Rank& peer = use(step) == Use::send ? block.send : block.recv;
      if (peer >= 0) continue;
      peer = step.end.peer;
      found->second = block.id;
      return;
    }
    found->second = static_cast<std::int32_t>(gpu_.blocks.size());
    gpu_.blocks.push_back({.id = found->second, .channel = step.channel, .steps = {}});
    if (use(step) == Use::send) gpu_.blocks.back().send = step.end.peer;
    if (use(step) == Use::receive) gpu_.blocks.back().recv = step.end.peer;
    known_.emplace_back();
  }

  // A step can wait for one other block. Further waits go to nops before it.
  void wait(std::int32_t block, std::int32_t i) {
    std::map<std::int32_t, std::int32_t> wanted;  // the last step to wait for, by block
    for (const std::int32_t before : program_.after(program_.steps[i])) {
      const Place place = last_[before];
      if (place.block == block || known(block, place.block) > place.step) continue;
      auto& step = wanted.try_emplace(place.block, -1).first->second;
      step = std::max(step, place.step);
    }
    for (auto left = wanted.size(); const auto& [other, step] : wanted) {
      known(block, other) = step + 1;
      gpu_.blocks[other].steps[step].waited_for = true;
      waiting_ = {other, step};
      if (--left > 0) put(block, XmlStepType::nop, {}, {});
    }
  }

  std::int32_t& known(std::int32_t block, std::int32_t other) { return known_[block][other]; }

  void put(std::int32_t block, XmlStepType type, const Slice& source, const Slice& target) {
    msccl::XmlStep step{.type = type, .source = {source.buffer, source.first}, .target = {target.buffer, target.first}};
    step.count = source.count;
    step.wait_block = waiting_.block;
    step.wait_step = waiting_.step;
    waiting_ = {};
    gpu_.blocks[block].steps.push_back(step);
  }

  const Program& program_;
  const Schedule& s_;
  Rank rank_;
  std::vector<Place> last_;  // per step: the last MSCCL step that it became
  msccl::XmlGpu gpu_;
  std::map<std::tuple<std::uint8_t, Use, Rank>, std::int32_t> block_;
  std::vector<std::map<std::int32_t, std::int32_t>> known_;  // per block: steps of other blocks that it waited for
  Place waiting_;
};

}  // namespace

std::string export_msccl(const Schedule& s) {
  msccl::XmlFile file{.name = s.algorithm, .collective = collective_name(s.task.operation.collective), .gpus = {}};
  file.channels = s.channels;
  file.chunks = static_cast<std::int32_t>(data_chunks(s.task));
  file.in_place = s.task.operation.in_place;
  file.out_of_place = !s.task.operation.in_place;
  StepWiring wiring;
  if (const auto fault = StepWiring::connect(s, wiring)) throw std::invalid_argument(fault->text);
  const auto order = running_order(s, wiring);
  for (Rank r = 0; r < s.ranks(); ++r) file.gpus.push_back(Folder(s, r).run(order[r]));
  return msccl::write(file);
}

}  // namespace trellis::schedule
