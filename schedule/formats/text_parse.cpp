#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "schedule/formats/line_tokenizer.h"
#include "schedule/formats/text.h"
#include "schedule/invalid_collective.h"
#include "text/refuse.h"

namespace trellis::schedule {
namespace {

// One number, or first..last.
void run(LineTokenizer& line, std::int32_t& first, std::int32_t& count) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  first = line.number("a chunk number");
  count = 1;
  if (line.take("..")) count = line.number("the last chunk", first, std::min(first + most - 1, most)) - first + 1;
}

Slice slice(LineTokenizer& line) {
  Slice s;
  if (line.take("in"))
    s.buffer = Buffer::input;
  else if (line.take("out"))
    s.buffer = Buffer::output;
  else if (line.take("tmp"))
    s.buffer = Buffer::scratch;
  else
    line.fail("in[..], out[..] or tmp[..]");
  line.expect("[");
  run(line, s.first, s.count);
  line.expect("]");
  return s;
}

End end_of(LineTokenizer& line) {
  End end;
  end.peer = line.number("a rank");
  line.expect("tag");
  end.tag = line.number("a tag");
  return end;
}

Collective collective(LineTokenizer& line) {
  const LineTokenizer before = line;
  const std::string_view word = line.word();
  for (const Collective c : collectives())
    if (name(c) == word) return c;
  before.fail("the name of a collective, such as all_reduce");
}

Op op(LineTokenizer& line) {
  const LineTokenizer before = line;
  const std::string_view word = line.word();
  for (int i = 0; i < op_count; ++i)
    if (name(static_cast<Op>(i)) == word) return static_cast<Op>(i);
  before.fail("send, recv, recv_reduce, copy or reduce");
}

std::vector<Pair> pairs(LineTokenizer& line) {
  std::vector<Pair> all;
  while (!line.done()) {
    Pair pair;
    pair.source = line.number("a rank");
    line.expect(">");
    pair.target = line.number("a rank");
    all.push_back(pair);
  }
  return all;
}

// The fields allowed above the first rank, each at most once.
struct Field {
  std::string_view name;
  bool required;
  void (*read)(LineTokenizer&, Schedule&);
};

constexpr std::array<Field, 10> fields{{
    {"collective", true, [](LineTokenizer& line, Schedule& s) { s.task.operation.collective = collective(line); }},
    {"ranks", true, [](LineTokenizer& line, Schedule& s) { s.task.ranks = line.number("how many ranks", 1); }},
    {"pieces", true, [](LineTokenizer& line, Schedule& s) { s.task.pieces = line.number("chunks in a block", 1); }},
    {"root", false, [](LineTokenizer& line, Schedule& s) { s.task.operation.root = line.number("a rank"); }},
    {"peer", false, [](LineTokenizer& line, Schedule& s) { s.task.operation.peer = line.number("a rank"); }},
    {"pairs", false, [](LineTokenizer& line, Schedule& s) { s.task.operation.pairs = pairs(line); }},
    {"in_place", false, [](LineTokenizer&, Schedule& s) { s.task.operation.in_place = true; }},
    {"even", false, [](LineTokenizer&, Schedule& s) { s.task.even = true; }},
    {"algorithm", false, [](LineTokenizer& line, Schedule& s) { s.algorithm = line.unescaped(); }},
    {"channels", true,
     [](LineTokenizer& line, Schedule& s) { s.channels = line.number("how many channels", 1, most_channels); }},
}};

unsigned bit(const Field& field) { return 1u << (&field - fields.data()); }

// Reads a schedule line by line. Never allocates more than the text spells out.
class Reader {
 public:
  void read(LineTokenizer line, std::size_t number) {
    if (line.done() || line.take("#")) return;
    if (!begun_) {
      line.expect(text_headline);
      line.end();
      begun_ = true;
      return;
    }
    if (line.take("rank")) {
      begin_rank(line);
    } else if (schedule_.programs.empty()) {
      head(line, number);
    } else {
      step(line);
    }
    line.end();
  }

  Schedule finish(std::size_t lines) {
    const LineTokenizer at_end({}, lines);
    if (!begun_) at_end.fail(fmt::format("'{}'", text_headline));
    for (const Field& field : fields)
      if (field.required && !(seen_ & bit(field))) at_end.fail(fmt::format("a line '{} ...'", field.name));
    if (static_cast<std::int64_t>(schedule_.programs.size()) != schedule_.ranks())
      at_end.fail(fmt::format("'rank {}': {} ranks are announced", schedule_.programs.size(), schedule_.ranks()));
    check_task();
    return std::move(schedule_);
  }

 private:
  void head(LineTokenizer& line, std::size_t number) {
    for (const Field& field : fields) {
      const LineTokenizer before = line;
      if (!line.take(field.name)) continue;
      if (seen_ & bit(field)) before.fail(fmt::format("'{}' only once", field.name));
      seen_ |= bit(field);
      lines_[&field - fields.data()] = number;
      return field.read(line, schedule_);
    }
    line.fail("a property of the schedule, such as 'ranks', or 'rank 0'");
  }

  // An omitted field's default can only conflict with the collective's line, so that line is reported.
  void check_task() const try { check(schedule_.task); } catch (const InvalidCollective& fault) {
    std::size_t line = lines_[0];
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (fields[i].name == fault.member && lines_[i] != 0) line = lines_[i];
    text::refuse("line {}: {}", line, fault.what());
  }

  void begin_rank(LineTokenizer& line) {
    const auto next = static_cast<std::int64_t>(schedule_.programs.size());
    line.number(fmt::format("rank {}, the next one,", next), next, next);
    line.expect("scratch");
    Program& program = schedule_.programs.emplace_back();
    program.scratch = line.number("how many scratch chunks");
    for (bool more = line.take("like"); more; more = !line.done()) {
      ScratchSize size;
      run(line, size.like, size.count);
      program.scratch_sizes.push_back(size);
    }
  }

  void step(LineTokenizer& line) {
    Program& program = schedule_.programs.back();
    const auto index = static_cast<std::int64_t>(program.steps.size());
    line.number(fmt::format("step {}, the next one,", index), index, index);
    Step step;
    step.op = op(line);
    if (writes(step.op)) step.to = slice(line);
    if (writes(step.op) && reads(step.op)) line.expect("=");
    if (reads(step.op)) step.from = slice(line);
    further_.clear();
    while (step.op == Op::reduce && line.take("+")) further_.push_back(slice(line));
    while (step.op == Op::copy && line.take("and")) {
      line.expect("to");
      further_.push_back(slice(line));
    }
    if (sends(step.op)) {
      line.expect("to");
      step.end = end_of(line);
      if (line.take("and")) step.second = end_of(line);
    } else if (receives(step.op)) {
      line.expect("from");
      step.end = end_of(line);
    }
    if (line.take("channel")) step.channel = line.number<std::uint8_t>("a channel");
    after_.clear();
    for (bool more = line.take("after"); more; more = !line.done()) after_.push_back(line.number("an earlier step"));
    program.set_after(step, after_);
    program.set_further(step, further_);
    program.steps.push_back(step);
  }

  Schedule schedule_;
  bool begun_ = false;
  unsigned seen_ = 0;
  std::array<std::size_t, fields.size()> lines_ = {};  // line of each field; the collective's is first
  std::vector<Slice> further_;
  std::vector<std::int32_t> after_;
};

}  // namespace

Schedule parse(std::string_view text) {
  Reader reader;
  std::size_t number = 1;
  for (; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.read({text.substr(0, end), number}, number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish(number);
}

}  // namespace trellis::schedule
