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

// Takes step i out and lets what waited for it wait for what it waited for, or for nothing.
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

// An edit of one step, in the program that it belongs to.
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
      if (e.program.rooms.empty()) return "";
      Room& room = e.program.rooms[pick(e.random, e.program.rooms.size())];
      (e.random() % 2 ? room.like : room.count) += e.small();
      return "changes how large scratch is";
    }
  }
}

}  // namespace

std::string damage(Schedule& s, std::mt19937& random) {
  Program& program = s.programs[pick(random, s.programs.size())];
  if (program.steps.empty()) return "";
  const Edit edit{program, pick(random, program.steps.size()), random};
  switch (random() % 18) {
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
    default:
      return change_places(edit);
  }
}

}  // namespace trellis::schedule
