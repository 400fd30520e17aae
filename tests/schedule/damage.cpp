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

}  // namespace

std::string damage(Schedule& s, std::mt19937& random) {
  Program& program = s.programs[pick(random, s.programs.size())];
  if (program.steps.empty()) return "";
  const std::size_t index = pick(random, program.steps.size());
  Step& step = program.steps[index];
  Step& other = program.steps[pick(random, program.steps.size())];
  const auto small = [&] { return static_cast<std::int32_t>(random() % 5) - 2; };
  switch (random() % 18) {
    case 0:
      some_slice(step, random).first += small();
      return "moves a run";
    case 1:
      some_slice(step, random).count += small();
      return "changes a run's length";
    case 2:
      some_slice(step, random).buffer = static_cast<Buffer>(random() % 3);
      return "changes a buffer";
    case 3:
      step.op = static_cast<Op>(random() % op_count);
      return "changes the kind of step";
    case 4: {
      auto after = after_of(program, step);
      if (after.empty()) return "";
      after.erase(after.begin() + static_cast<std::ptrdiff_t>(pick(random, after.size())));
      set_after(program, step, after);
      return "drops a wait";
    }
    case 5: {
      auto after = after_of(program, step);
      if (after.empty()) return "";
      after[pick(random, after.size())] = static_cast<std::int32_t>(pick(random, program.steps.size()));
      set_after(program, step, after);
      return "waits for another step";
    }
    case 6: {
      auto after = after_of(program, step);
      if (index == 0) return "";
      after.push_back(static_cast<std::int32_t>(pick(random, index)));
      set_after(program, step, after);
      return "adds a wait";
    }
    case 7:
      step.end.peer += small();
      return "changes a peer";
    case 8:
      step.end.tag += small();
      return "changes a tag";
    case 9:
      std::swap(step.end, other.end);
      return "swaps two transfers";
    case 10:
      std::swap(step.to, other.to);
      return "swaps two targets";
    case 11:
      std::swap(step.from, other.from);
      return "swaps two sources";
    case 12:
      step.channel ^= 1;
      return "changes a channel";
    case 13:
      remove_step(program, static_cast<std::int32_t>(index));
      return "leaves a step out";
    case 14: {
      const Step again = step;
      program.steps.push_back(again);
      return "does a step twice";
    }
    case 15: {
      if (step.further.count == 0) return "";
      Slice& further = program.slices[step.further.first + pick(random, step.further.count)];
      further.first += small();
      return "moves a further source or target";
    }
    case 16: {
      if (program.rooms.empty()) return "";
      Room& room = program.rooms[pick(random, program.rooms.size())];
      if (random() % 2)
        room.like += small();
      else
        room.count += small();
      return "changes how large scratch is";
    }
    default:
      if (step.second == End{}) return "";
      std::swap(step.end, step.second);
      step.second.tag += small();
      return "changes a second end";
  }
}

}  // namespace trellis::schedule
