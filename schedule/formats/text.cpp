#include "schedule/formats/text.h"

#include <fmt/format.h>

#include <iterator>

#include "schedule/formats/line_tokenizer.h"
#include "text/refuse.h"

namespace trellis::schedule {
namespace {

using Text = fmt::memory_buffer;

template <class... Values>
void put(Text& text, fmt::format_string<Values...> form, Values&&... values) {
  fmt::format_to(std::back_inserter(text), form, std::forward<Values>(values)...);
}

void put(Text& text, const Slice& s) {
  if (s.count == 1)
    put(text, " {}[{}]", name(s.buffer), s.first);
  else
    put(text, " {}[{}..{}]", name(s.buffer), s.first, std::int64_t{s.first} + s.count - 1);
}

void put(Text& text, const Program& program, std::size_t index) {
  const Step& step = program.steps[index];
  put(text, "{} {}", index, name(step.op));
  if (writes(step.op)) put(text, step.to);
  if (writes(step.op) && reads(step.op)) put(text, " =");
  if (reads(step.op)) put(text, step.from);
  for (const Slice& more : program.further(step)) {
    put(text, "{}", step.op == Op::reduce ? " +" : " and to");
    put(text, more);
  }
  if (sends(step.op)) put(text, " to {} tag {}", step.end.peer, step.end.tag);
  if (sends(step.op) && step.second != End{}) put(text, " and {} tag {}", step.second.peer, step.second.tag);
  if (receives(step.op)) put(text, " from {} tag {}", step.end.peer, step.end.tag);
  if (step.channel != 0) put(text, " channel {}", step.channel);
  if (step.after.count > 0) put(text, " after");
  for (const std::int32_t before : program.after(step)) put(text, " {}", before);
  put(text, "\n");
}

void put(Text& text, Rank rank, const Program& program) {
  put(text, "rank {} scratch {}", rank, program.scratch);
  if (!program.scratch_sizes.empty()) put(text, " like");
  for (const ScratchSize& size : program.scratch_sizes) {
    put(text, " {}", size.like);
    if (size.count != 1) put(text, "..{}", std::int64_t{size.like} + size.count - 1);
  }
  put(text, "\n");
  for (std::size_t i = 0; i < program.steps.size(); ++i) put(text, program, i);
}

void put(Text& text, const Task& t) {
  put(text, "collective {}\nranks {}\npieces {}\n", name(t.operation.collective), t.ranks, t.pieces);
  if (rooted(t.operation.collective) || t.operation.collective == Collective::send_recv || t.operation.root != 0)
    put(text, "root {}\n", t.operation.root);
  if (t.operation.collective == Collective::send_recv || t.operation.peer != 0)
    put(text, "peer {}\n", t.operation.peer);
  if (!t.operation.pairs.empty()) {
    put(text, "pairs");
    for (const Pair& pair : t.operation.pairs) put(text, " {}>{}", pair.source, pair.target);
    put(text, "\n");
  }
  if (t.operation.in_place) put(text, "in_place\n");
  if (t.even) put(text, "even\n");
}

}  // namespace

std::string print(const Schedule& schedule) {
  Text text;
  put(text, "{}\n", text_headline);
  put(text, schedule.task);
  if (!schedule.algorithm.empty()) put(text, "algorithm {}\n", escaped(schedule.algorithm));
  put(text, "channels {}\n", schedule.channels);
  for (std::size_t r = 0; r < schedule.programs.size(); ++r) {
    put(text, "\n");
    put(text, static_cast<Rank>(r), schedule.programs[r]);
  }
  return fmt::to_string(text);
}

std::string print(const Schedule& schedule, Rank rank) {
  if (rank < 0 || rank >= static_cast<std::int64_t>(schedule.programs.size()))
    text::refuse("{} is not a rank: expected 0 to {}", rank, static_cast<std::int64_t>(schedule.programs.size()) - 1);
  Text text;
  put(text, rank, schedule.programs[rank]);
  return fmt::to_string(text);
}

}  // namespace trellis::schedule
