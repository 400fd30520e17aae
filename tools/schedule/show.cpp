#include <fmt/format.h>

#include "schedule/formats/text.h"
#include "text/refuse.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/schedule/schedule_source.h"
#include "tools/schedule/schedule_summary.h"

namespace trellis::tools {
namespace {

using schedule::Program;
using schedule::Rank;
using schedule::Schedule;

struct Options {
  std::string word;
  RequestOptions request;
  Rank rank = -1;
  std::string output;
};

void add(CLI::App& app, Options& o) {
  app.add_option("schedule", o.word, "A collective, or a file that holds a schedule")->required();
  add_request_options(app, o.request);
  app.add_option("--rank", o.rank, "Only this rank's program, made without the others'")
      ->check(CLI::Range(0, most_ranks));
  app.add_option("-o,--output", o.output, "Write here [standard output]")->check(output_file());
}

// Facts about a schedule are printed as comments, so that the output can be read again.
std::string facts(const std::string& words, const Schedule& s) {
  const ScheduleSummary found = summary(s);
  const std::string rounds = found.rounds < 0 ? "no order that can be followed: see `trellis schedule verify`"
                                              : fmt::format("a longest chain of {}", found.rounds);
  return fmt::format(
      "# {}\n# {} ranks, {} steps, {} transfers, {}\n# each rank sends {} chunks in {} messages, and "
      "needs {} chunks of scratch\n",
      words, found.ranks, found.steps, found.transfers, rounds, found.chunks.text(), found.messages.text(),
      found.scratch.text());
}

std::string facts(const std::string& words, const Program& program, Rank rank, Rank ranks) {
  std::int64_t messages = 0, chunks = 0, received = 0;
  count_sent(program, messages, chunks);
  for (const schedule::Step& step : program.steps) received += receives(step.op) ? 1 : 0;
  return fmt::format(
      "# {}\n# rank {} of {}: {} steps; sends {} chunks in {} messages, receives {} messages, needs {} "
      "chunks of scratch\n",
      words, rank, ranks, program.steps.size(), chunks, messages, received, program.scratch);
}

void check_rank(Rank rank, Rank ranks) {
  if (rank >= ranks) text::refuse("--rank {}: expected 0 to {}", rank, ranks - 1);
}

// One rank's program of a request of any size.
std::string show_rank(const ScheduleSource& what, Rank rank) {
  const AlgorithmRequest& a = *what.asked;
  check_rank(rank, a.request.ranks());
  Schedule alone{.task = task_of(*a.algorithm, a.request), .algorithm = a.algorithm->name, .programs = {}};
  alone.programs.resize(static_cast<std::size_t>(rank) + 1);
  alone.programs[rank] = make_program(*a.algorithm, a.request, rank);
  return facts(in_words(what), alone.programs[rank], rank, a.request.ranks()) + print(alone, rank);
}

std::string stage_unreadable_buffers(const ScheduleSource& what, Rank rank) {
  if (what.asked && rank >= 0) return show_rank(what, rank);
  if (what.asked && too_large(*what.asked))
    text::refuse("{}: too large to show for all of its {} ranks; name one with --rank", in_words(what),
                 what.asked->request.ranks());
  const Schedule s = written_out(what);
  if (rank < 0) return facts(in_words(what), s) + print(s);
  check_rank(rank, s.ranks());
  return facts(in_words(what), s.programs[rank], rank, s.ranks()) + print(s, rank);
}

int run(const Options& o) {
  write_output(o.output, stage_unreadable_buffers(subject(o.word, o.request), o.rank));
  return 0;
}

const RegisteredCommand show("schedule show", "Prints a schedule, or one rank's program of it",
                             "trellis schedule show all_reduce --algorithm ring --dims 4x4\n"
                             "trellis schedule show all_gather -a ring -d 1000000 --rank 7 | head\n"
                             "trellis schedule show allreduce.xml",
                             add, run);

}  // namespace
}  // namespace trellis::tools
