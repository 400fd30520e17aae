#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "ccl/print_to_stderr.h"
#include "sim/hardware/thread_pool.h"
#include "text/refuse.h"
#include "tools/program/command.h"
#include "tools/program/interrupt_poller.h"
#include "tools/program/json_text.h"
#include "tools/program/output.h"
#include "tools/program/progress.h"
#include "tools/program/table.h"
#include "tools/schedule/proof.h"
#include "tools/schedule/schedule_source.h"
#include "tools/schedule/verify_sweep.h"

namespace trellis::tools {
namespace {

using schedule::Collective;

struct Options {
  std::vector<std::string> words;
  RequestOptions request;
  bool folded = false;
  bool all = false;
  std::string ranks = "1..17,32,64";
  std::string collective;
  unsigned jobs = static_cast<unsigned>(sim::processors());
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.add_option("schedule", o.words, "A collective, or files that hold schedules");
  add_request_options(app, o.request);
  CLI::Option* folded =
      app.add_flag("--folded", o.folded, "Prove on a small machine, and sample ranks of this one [when it is large]");
  CLI::Option* all = app.add_flag("--all", o.all, "Every algorithm, collective and shape, in place and not");
  folded->excludes(all);
  app.add_option("--ranks", o.ranks, "With --all: these counts of ranks")->capture_default_str()->needs(all);
  app.add_option("--collective", o.collective, "With --all: only this one")->needs(all);
  app.add_option("-j,--jobs", o.jobs, "With --all: threads")->check(CLI::Range(1, 1024))->needs(all);
  app.add_flag("--json", o.json, "Print JSON");
}

nlohmann::ordered_json as_json(const ProofReport& proof) {
  return {
      {"schedule", proof.of},         {"ok", proof.ok()},       {"ranks", proof.ranks},     {"steps", proof.steps},
      {"transfers", proof.transfers}, {"proved", proof.proved}, {"sampled", proof.sampled}, {"limits", proof.limits},
      {"fault", proof.fault}};
}

// The exit status of a command on many files: the worst result.
enum Status : int { all_good = 0, faulty = 1, unreadable = 1, unparsable = 2 };

int report(const std::vector<ProofReport>& proofs, bool json, int status) {
  std::string text;
  auto list = nlohmann::ordered_json::array();
  for (const ProofReport& proof : proofs) {
    if (!proof.ok()) status = std::max<int>(status, faulty);
    text += proof.text();
    list.push_back(as_json(proof));
  }
  write_output("", json ? json_text(nlohmann::ordered_json{{"proofs", list}}) : text);
  return status;
}

// Cuts the name off the message's beginning: the report prints it already.
std::string without_name(std::string_view message, const std::string& name) {
  if (message.starts_with(name + ": ")) message.remove_prefix(name.size() + 2);
  return std::string(message);
}

// A file that can't be read is reported: the others are still proved, and JSON stays valid.
ProofReport prove_file(const ScheduleSource& what, int& status) {
  const std::string name = in_words(what);
  ProofReport proof{.of = name};
  try {
    return prove(written_out(what), name);
  } catch (const std::invalid_argument& error) {
    proof.fault = without_name(error.what(), name);
    status = unparsable;
  } catch (const std::system_error& error) {
    proof.fault = error.what();
    status = std::max<int>(status, unreadable);
  } catch (const std::bad_alloc&) {
    proof.fault = "not enough memory to prove it";
    status = std::max<int>(status, unreadable);
  }
  return proof;
}

int verify_some(const Options& o) {
  std::vector<ScheduleSource> subjects;
  for (const std::string& word : o.words) {
    subjects.push_back(subject(word, o.request));
    const bool asked = subjects.back().asked.has_value();
    if (asked && o.words.size() > 1)
      text::refuse("'{}' and {} more: expected one collective, or files", word, o.words.size() - 1);
    if (!asked && o.folded) throw std::invalid_argument("--folded goes with a collective, not with a file");
  }
  if (const ScheduleSource& what = subjects.front(); subjects.size() == 1 && (what.asked || !o.json))
    return report({what.asked ? prove(*what.asked, o.folded || too_large(*what.asked))
                              : prove(written_out(what), in_words(what))},
                  o.json, all_good);
  std::vector<ProofReport> proofs;
  int status = all_good;
  for (const ScheduleSource& what : subjects) proofs.push_back(prove_file(what, status));
  return report(proofs, o.json, status);
}

Table table_of(const std::vector<VerifySweepResult>& rows, bool some_folded) {
  std::vector<Column> columns{left("algorithm"), left("collective")};
  for (const char* name : {"proved", "folded", "does not apply", "refused", "failed", "steps"})
    if (some_folded || std::string_view(name) != "folded") columns.push_back({name});
  columns.push_back({"time", "s"});
  columns.push_back(left("refused most for"));
  Table table("proofs", std::move(columns));
  for (const VerifySweepResult& r : rows) {
    std::vector<Cell> cells{r.algorithm, std::string(schedule::name(r.collective)), r.proved};
    if (some_folded) cells.emplace_back(r.folded);
    for (const std::int64_t n : {r.elsewhere, r.refused, r.failed, r.steps}) cells.emplace_back(n);
    cells.emplace_back(r.seconds);
    cells.emplace_back(r.reason);
    table.add(std::move(cells));
  }
  return table;
}

int verify_all(const Options& o) {
  if (!o.words.empty()) text::refuse("--all takes no schedule: '{}' is one too many", o.words.front());
  RequestOptions rest = o.request;
  rest.algorithm.clear();
  if (const std::string option = first_given(rest); !option.empty())
    text::refuse("--all tries every {} by itself", option);
  if (!o.request.algorithm.empty()) schedule::algorithm_named(o.request.algorithm);
  if (!o.collective.empty()) schedule::collective_named(o.collective);
  const InterruptPoller interrupts;
  Progress progress;
  bool stopped = false;
  const auto rows = sweep(
      {o.request.algorithm, o.collective, parse_rank_counts(o.ranks), o.jobs}, [&](std::size_t done, std::size_t of) {
        progress.say(fmt::format("{} of {} requests", done, of), static_cast<double>(done) / static_cast<double>(of));
        return !(stopped = stopped || interrupts.asked());
      });
  progress.clear();
  VerifySweepResult sum{.algorithm = {}, .reason = {}, .faults = {}};
  for (const VerifySweepResult& row : rows) {
    sum.proved += row.proved, sum.folded += row.folded, sum.elsewhere += row.elsewhere;
    sum.refused += row.refused, sum.failed += row.failed, sum.undone += row.undone;
    sum.faults.insert(sum.faults.end(), row.faults.begin(), row.faults.end());
  }
  if (rows.empty()) text::refuse("--all: {} does not serve {}", o.request.algorithm, o.collective);
  const Table table = table_of(rows, o.json || sum.folded > 0);
  if (o.json) {
    auto whole = table.object();
    whole["faults"] = sum.faults;
    if (stopped) whole["not_tried"] = sum.undone;
    write_output("", json_text(whole));
  } else {
    std::string text = table.text();
    for (const std::string& fault : sum.faults) text += fmt::format("FAULT {}\n", fault);
    if (const auto told = static_cast<std::int64_t>(sum.faults.size()); sum.failed > told)
      text += fmt::format("and {} faults more of these rows\n", sum.failed - told);
    const std::string folded = sum.folded > 0 ? fmt::format(", {} proved when small and sampled", sum.folded) : "";
    text += fmt::format("{} proved{}, {} do not apply, {} refused, {} failed\n", sum.proved, folded, sum.elsewhere,
                        sum.refused, sum.failed);
    if (stopped) text += fmt::format("interrupted: {} requests were not tried\n", sum.undone);
    write_output("", text);
  }
  return sum.failed == 0 && !stopped ? 0 : 1;
}

int run(const Options& o) {
  if (o.all) return verify_all(o);
  if (o.words.empty()) throw std::invalid_argument("nothing to verify: expected a collective, files, or --all");
  return verify_some(o);
}

const RegisteredCommand verify_command("schedule verify",
                                       "Proves that schedules compute their collective, or says where one fails",
                                       "trellis schedule verify all_reduce --algorithm ring --dims 4x4 --in-place\n"
                                       "trellis schedule verify allreduce.xml allgather.txt\n"
                                       "trellis schedule verify all_gather -a ring -d 64x512 --folded\n"
                                       "trellis schedule verify --all --ranks 1..17,32,64",
                                       add, run);

}  // namespace
}  // namespace trellis::tools
