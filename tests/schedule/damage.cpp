#include "tests/schedule/damage.h"

#include <fmt/format.h>

namespace trellis::schedule {
namespace {

std::size_t pick(std::mt19937& random, std::size_t count) { return random() % count; }

void set_after(Program& program, Step& step, const std::vector<std::int32_t>& after) {
  std::vector<std::int32_t> copy = after;
  program.set_after(step, copy);
}

std::vector<std::int32_t> after_of(const Program& program, const Step& step) {
  const auto view = program.after(step);
  return {view.begin(), view.end()};
}

// Removes step i. Steps that waited for it then wait for its dependencies, or for nothing.
void remove_step(Program& program, std::int32_t gone) {
  for (std::size_t i = gone + 1; i < program.steps.size(); ++i) {
    std::vector<std::int32_t> after;
    for (std::int32_t before : after_of(program, program.steps[i])) {
      if (before == gone) continue;
      after.push_back(before > gone ? before - 1 : before);
    }
    set_after(program, program.steps[i], after);
  }
  program.steps.erase(program.steps.begin() + gone);
}

Slice& some_slice(Step& step, std::mt19937& random) {
  if (!writes(step.op)) return step.from;
  if (!reads(step.op)) return step.to;
  return random() % 2 ? step.to : step.from;
}

// An edit of one step, with its program.
struct Edit {
  Program& program;
  std::size_t index;
  std::mt19937& random;

  Step& step() const { return program.steps[index]; }
  Step& other() const { return program.steps[pick(random, program.steps.size())]; }
  std::int32_t small() const { return static_cast<std::int32_t>(random() % 5) - 2; }
};

std::string change_waits(const Edit& e) {
  auto after = after_of(e.program, e.step());
  const auto other = [&](std::size_t below) { return static_cast<std::int32_t>(pick(e.random, below)); };
  const auto kind = e.random() % 3;
  if (kind == 0 && e.index > 0) {
    after.push_back(other(e.index));
    set_after(e.program, e.step(), after);
    return "adds a wait";
  }
  if (after.empty()) return "";
  const std::size_t at = pick(e.random, after.size());
  if (kind == 1)
    after[at] = other(e.program.steps.size());
  else
    after.erase(after.begin() + static_cast<std::ptrdiff_t>(at));
  set_after(e.program, e.step(), after);
  return kind == 1 ? "waits for another step" : "drops a wait";
}

std::string change_steps(const Edit& e) {
  if (e.random() % 2) {
    remove_step(e.program, static_cast<std::int32_t>(e.index));
    return "leaves a step out";
  }
  const Step again = e.step();
  e.program.steps.push_back(again);
  return "does a step twice";
}

std::string change_transfer(const Edit& e) {
  switch (e.random() % 5) {
    case 0:
      e.step().end.peer += e.small();
      return "changes a peer";
    case 1:
      e.step().end.tag += e.small();
      return "changes a tag";
    case 2:
      std::swap(e.step().end, e.other().end);
      return "swaps two transfers";
    case 3:
      e.step().channel ^= 1;
      return "changes a channel";
    default:
      if (e.step().second == End{}) return "";
      std::swap(e.step().end, e.step().second);
      e.step().second.tag += e.small();
      return "changes a second end";
  }
}

std::string change_places(const Edit& e) {
  Step& step = e.step();
  switch (e.random() % 7) {
    case 0:
      some_slice(step, e.random).first += e.small();
      return "moves a run";
    case 1:
      some_slice(step, e.random).count += e.small();
      return "changes a run's length";
    case 2:
      some_slice(step, e.random).buffer = static_cast<Buffer>(e.random() % 3);
      return "changes a buffer";
    case 3:
      std::swap(step.to, e.other().to);
      return "swaps two targets";
    case 4:
      std::swap(step.from, e.other().from);
      return "swaps two sources";
    case 5: {
      if (step.further.count == 0) return "";
      e.program.slices[step.further.first + pick(e.random, step.further.count)].first += e.small();
      return "moves a further source or target";
    }
    default: {
      if (e.program.scratch_sizes.empty()) return "";
      ScratchSize& room = e.program.scratch_sizes[pick(e.random, e.program.scratch_sizes.size())];
      (e.random() % 2 ? room.like : room.count) += e.small();
      return "changes how large scratch is";
    }
  }
}

// Values that the types of a Step allow although they are invalid.
std::string change_bits(const Edit& e) {
  Step& step = e.step();
  switch (e.random() % 4) {
    case 0:
      step.op = static_cast<Op>(op_count + e.random() % 8);
      return "does what is no kind of step";
    case 1:
      some_slice(step, e.random).buffer = static_cast<Buffer>(3 + e.random() % 8);
      return "names what is no buffer";
    case 2:
      (e.random() % 2 ? step.after.first : step.after.count) ^= 1u << e.random() % 32;
      return "finds its waits elsewhere";
    default:
      (e.random() % 2 ? step.further.first : step.further.count) ^= 1u << e.random() % 32;
      return "finds its further places elsewhere";
  }
}

// Simulates a generator's bug: the same mistake on all ranks.
std::string change_everywhere(Schedule& s, std::mt19937& random) {
  const auto chunks = static_cast<std::int32_t>(std::min<std::int64_t>(data_chunks(s.task), 64));
  const auto buffer = static_cast<Buffer>(random() % 3);
  const auto wrong = static_cast<std::int32_t>(pick(random, chunks));
  const auto right = static_cast<std::int32_t>(pick(random, chunks));
  const auto change = [&](Slice& slice) {
    if (slice.count == 1 && slice.buffer == buffer && slice.first == right) slice.first = wrong;
  };
  for (Program& program : s.programs) {
    for (Step& step : program.steps) change(step.to), change(step.from);
    for (Slice& slice : program.slices) change(slice);
  }
  return "takes one chunk for another, on all ranks";
}

std::string change_collective(Task& t, std::mt19937& random) {
  const auto all = collectives();
  t.operation.collective = all[pick(random, all.size())];
  const bool pairwise = t.operation.collective == Collective::send_recv;
  if (!rooted(t.operation.collective) && !pairwise) t.operation.root = 0;
  t.operation.peer = pairwise ? static_cast<Rank>(pick(random, t.ranks)) : 0;
  t.even = t.even && !uneven(t.operation.collective);
  t.operation.pairs.clear();
  for (Rank r = 0; t.operation.collective == Collective::permute && r < t.ranks; ++r)
    t.operation.pairs.push_back({r, (r + 1) % t.ranks});
  return "claims to be another collective";
}

std::string change_pairs(Task& t, std::mt19937& random) {
  if (t.operation.pairs.empty()) return "";
  Pair& pair = t.operation.pairs[pick(random, t.operation.pairs.size())];
  switch (random() % 3) {
    case 0:
      std::swap(pair.target, t.operation.pairs[pick(random, t.operation.pairs.size())].target);
      return "claims to permute otherwise";
    case 1:
      pair.target = static_cast<Rank>(pick(random, t.ranks));
      return "claims another target";
    default:
      pair = t.operation.pairs.back();
      t.operation.pairs.pop_back();
      return "claims a pair less";
  }
}

std::string change_counts(Schedule& s, std::mt19937& random) {
  Task& t = s.task;
  const std::int32_t by = random() % 2 ? 1 : -1;
  switch (random() % 4) {
    case 0:
      t.pieces += by;
      return "claims other pieces";
    case 1:
      t.pieces = random() % 2 ? t.pieces * 2 : t.pieces / 2;
      return "claims twice or half the pieces";
    case 2:
      t.ranks += by;
      if (random() % 2) s.programs.resize(std::max(0, t.ranks));
      return "claims other ranks";
    default: {
      const std::int32_t others[] = {s.channels - 1, s.channels + 1, 0, -1, most_channels + 1};
      s.channels = others[pick(random, std::size(others))];
      return "claims other channels";
    }
  }
}

}  // namespace

std::string damage_task(Schedule& s, std::mt19937& random) {
  Task& t = s.task;
  switch (random() % 8) {
    case 0:
    case 1:
      return change_collective(t, random);
    case 2:
      t.operation.root = static_cast<Rank>(pick(random, t.ranks));
      return "claims another root";
    case 3:
      t.operation.in_place = !t.operation.in_place;
      return "claims another place";
    case 4:
      t.even = !t.even;
      return "claims other sizes";
    case 5:
      if (t.operation.collective == Collective::permute) return change_pairs(t, random);
      t.operation.peer = static_cast<Rank>(pick(random, t.ranks));
      return "claims another peer";
    case 6:
      if (random() % 4 > 0) return "";
      t.operation.collective = static_cast<Collective>(collectives().size() + random() % 8);
      return "claims to be what is no collective";
    default:
      return change_counts(s, random);
  }
}

std::string damage(Schedule& s, std::mt19937& random) {
  if (random() % 20 == 0) return change_everywhere(s, random);
  Program& program = s.programs[pick(random, s.programs.size())];
  if (program.steps.empty()) return "";
  const Edit edit{program, pick(random, program.steps.size()), random};
  switch (random() % 19) {
    case 0:
      edit.step().op = static_cast<Op>(random() % op_count);
      return "changes the kind of step";
    case 1:
    case 2:
    case 3:
      return change_waits(edit);
    case 4:
    case 5:
      return change_steps(edit);
    case 6:
    case 7:
    case 8:
    case 9:
    case 10:
      return change_transfer(edit);
    case 11:
      return change_bits(edit);
    default:
      return change_places(edit);
  }
}

}  // namespace trellis::schedule
