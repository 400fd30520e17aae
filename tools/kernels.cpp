#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "kernels/check/kernel_trial.h"
#include "kernels/check/matmul_accuracy.h"
#include "kernels/check/row_kernel_trial.h"
#include "kernels/measure/relative_speed.h"
#include "kernels/types/mx.h"
#include "measure/bench_names.h"
#include "text/nearest.h"
#include "text/refuse.h"
#include "tools/program/command.h"
#include "tools/program/interrupt_poller.h"
#include "tools/program/json_text.h"
#include "tools/program/output.h"
#include "tools/program/progress.h"
#include "tools/program/table.h"

namespace trellis::tools {
namespace {

constexpr int rounds = 5, most_threads = 4096;

struct Options {
  std::string only, last_cache;
  bool check = false, speed = false, json = false;
  std::vector<int> threads;  // empty: one thread, and one for each core
};

void add(CLI::App& app, Options& o) {
  app.add_option("kernel", o.only, "Only kernels whose names begin with this");
  app.add_flag("--check", o.check, "Compare every vector form that this CPU can run with the scalar code");
  auto* const speed = app.add_flag("--speed", o.speed, "Time the kernels against plain loops that move as many bytes");
  app.add_option("--threads", o.threads,
                 "Time them from memory with these numbers of threads, beside the loop with as many")
      ->delimiter(',')
      ->check(CLI::Range(1, most_threads))
      ->needs(speed);
  app.add_option("--last-cache", o.last_cache,
                 "Size of the last-level cache to assume when timing from memory, as 32MiB: a virtual machine may\n"
                 "report one that it shares [as the system says]")
      ->needs(speed);
  app.add_flag("--json", o.json, "Print JSON, values in SI units");
}

// The implementation that runs under a kernel's name. `agrees` is empty when it is the scalar reference itself.
struct Used {
  std::string what;
  std::function<bool()> agrees = {};
};
using Kernels = std::map<std::string, Used>;

template <class Kernel>
void add_registered(Kernels& all, const Kernel& kernel) {
  std::function<bool()> agrees;
  for (const auto twin : kernel.twins)
    if (twin != nullptr) agrees = [&kernel] { return kernels::agrees(kernel); };
  all[kernel.name] = {std::string(kernel.chosen_name()), agrees};
}

Kernels used_here() {
  Kernels all;
  for (const auto& [name, kernel] : kernels::kernels()) add_registered(all, kernel);
  for (const auto& [name, kernel] : kernels::row_kernels()) add_registered(all, kernel);
  for (const kernels::MatmulTypes& p : kernels::products())
    all[fmt::format("matmul.{}.{}", name(p.from), name(p.to))] = {std::string(kernels::matmul_provider()),
                                                                  [&p] { return kernels::agrees(p); }};
  for (const char* plain : {"embedding", "embedding_gradient", "rotary"})
    for (const kernels::DType type : {kernels::DType::f32, kernels::DType::bf16})
      all[fmt::format("{}.{}", plain, name(type))] = {"truth"};
  for (const kernels::MxFormat format : kernels::mx_formats)
    for (const char* plain : {"mx_encode", "mx_decode"}) all[fmt::format("{}.{}", plain, name(format))] = {"truth"};
  return all;
}

// The first `words` words of the name: "cast.f32" for two.
std::string beginning(const std::string& name, std::size_t words) {
  std::size_t end = 0;
  for (; words > 0 && end != std::string::npos; --words) end = name.find('.', end == 0 ? 0 : end + 1);
  return name.substr(0, end);
}

// Kernels whose names begin with the prefix; throws when there are none.
Kernels chosen(Kernels all, const std::string& prefix) {
  const auto words = static_cast<std::size_t>(std::ranges::count(prefix, '.') + 1);
  std::set<std::string> families, alike;
  for (const auto& [name, used] : all) families.insert(beginning(name, 1)), alike.insert(beginning(name, words));
  std::erase_if(all, [&](const auto& entry) { return !entry.first.starts_with(prefix); });
  if (!all.empty()) return all;
  const std::string near = text::did_you_mean(prefix, {alike.begin(), alike.end()});
  if (!near.empty()) text::refuse("no kernel's name begins with '{}'{}", prefix, near);
  text::refuse("no kernel's name begins with '{}'; they begin with {}", prefix, fmt::join(families, ", "));
}

std::vector<kernels::TimedKernel> timed(const std::string& prefix) {
  std::vector<kernels::TimedKernel> all = kernels::speed_subjects();
  std::set<std::string> families;
  for (const kernels::TimedKernel& s : all) families.insert(beginning(s.kernel->name, 1));
  std::erase_if(all, [&](const kernels::TimedKernel& s) { return !s.kernel->name.starts_with(prefix); });
  if (all.empty())
    text::refuse("no kernel whose name begins with '{}' is timed; there are some of {}", prefix,
                 fmt::join(families, ", "));
  return all;
}

struct Timing {
  kernels::WorkingSetLevel regime;
  int threads;
};

// Several cores are timed from memory only, which they share; the caches are each core's own.
std::vector<Timing> timings(const std::vector<int>& threads) {
  std::vector<Timing> all;
  for (const int count : threads) all.push_back({kernels::WorkingSetLevel::memory, count});
  if (!all.empty()) return all;
  for (const kernels::WorkingSetLevel regime : kernels::regimes) all.push_back({regime, 1});
  if (kernels::cpu().cores > 1) all.push_back({kernels::WorkingSetLevel::memory, kernels::cpu().cores});
  return all;
}

// The same results twice: a line for each result, for programs; and a summary for people, with a line for each kernel,
// or for each kernel and number of threads where these are compared.
struct Speeds {
  Table all, summary;
  std::size_t timed = 0, wanted = 0;  // fewer than wanted when the user interrupts
};

std::string heading_of(const Timing& t) {
  return std::string(name(t.regime)) + (t.threads == 1 ? "" : fmt::format(", {} threads", t.threads));
}

// The columns of the summary: fractions stand side by side unless numbers of threads are compared.
Table empty_summary(const std::vector<Timing>& timings, bool by_threads) {
  std::vector<Column> columns = {left("name"), {"sources"}};
  if (by_threads) {
    columns.push_back({"threads"});
    columns.push_back({"speed", "B/s"});
    columns.push_back({"limit", "B/s"});
    columns.push_back({"of the limit"});
  } else {
    for (const Timing& t : timings) columns.push_back({heading_of(t)});
    columns.push_back({"loop's speed", "B/s"});
  }
  columns.push_back(left("loop"));
  return {"fractions", columns};
}

// This machine's CPU, with the size of the last cache that the user gives.
kernels::Cpu cpu_to_time(const std::string& last_cache) {
  kernels::Cpu cpu = kernels::cpu();
  if (!last_cache.empty()) cpu.l3_bytes = measure::parse_bytes(last_cache);
  if (!last_cache.empty() && cpu.l3_bytes < cpu.l2_bytes)
    text::refuse("--last-cache {}: expected at least the {} KiB of the second cache", last_cache, cpu.l2_bytes >> 10);
  return cpu;
}

Speeds speeds(const std::vector<kernels::TimedKernel>& subjects, const kernels::Cpu& cpu,
              const std::vector<int>& threads_wanted, const InterruptPoller& interrupts) {
  Table all("kernels", {left("name"),
                        {"sources"},
                        left("regime"),
                        {"threads"},
                        {"speed", "B/s"},
                        {"limit", "B/s"},
                        {"fraction of limit"},
                        left("limit loop")});
  const std::vector<Timing> wanted = timings(threads_wanted);
  const bool by_threads = !threads_wanted.empty();
  Table summary = empty_summary(wanted, by_threads);
  const kernels::TimingArena arena(subjects, cpu);
  const std::size_t timings = subjects.size() * wanted.size();
  std::size_t timed = 0;
  Progress progress(timings);
  for (const kernels::TimedKernel& subject : subjects) {
    const std::vector<Cell> begin = {subject.kernel->name, std::int64_t{subject.sources}};
    std::vector<Cell> row = begin;
    kernels::RelativeSpeed s;
    for (const auto& [regime, threads] : wanted) {
      if (interrupts.asked()) return {all, summary, timed, timings};  // without the kernel's line: a column lacks
      progress.next(fmt::format("{} from {}", subject.kernel->name, name(regime)));
      s = kernels::speed_of(arena, subject, regime, threads, rounds);
      ++timed;
      all.add({subject.kernel->name, std::int64_t{subject.sources}, std::string(name(regime)), std::int64_t{threads},
               s.bytes_per_s, s.limit_bytes_per_s, s.fraction_of_limit, std::string(s.limit)});
      const std::string fraction = fmt::format("{:.2f}", s.fraction_of_limit);
      if (by_threads)
        summary.add({begin[0], begin[1], std::int64_t{threads}, s.bytes_per_s, s.limit_bytes_per_s, fraction,
                     std::string(s.limit)});
      row.emplace_back(fraction);
    }
    if (by_threads) continue;
    row.emplace_back(s.limit_bytes_per_s);
    row.emplace_back(std::string(s.limit));
    summary.add(std::move(row));
  }
  return {all, summary, timed, timings};
}

struct Listing {
  Table table;
  std::vector<std::string> wrong;  // kernels that differ from their scalar reference
  std::size_t done = 0;            // fewer than all when the user interrupts
};

Listing listed(const Kernels& all, bool check, const InterruptPoller& interrupts) {
  std::vector<Column> columns = {left("name"), left("uses")};
  if (check) columns.push_back(left("agrees"));
  Listing listing{Table("kernels", columns)};
  Progress progress(check ? all.size() : 0);
  for (const auto& [name, used] : all) {
    if (interrupts.asked()) break;
    std::vector<Cell> row = {name, used.what};
    if (check) {
      progress.next(name);
      const bool agrees = !used.agrees || used.agrees();
      if (!agrees) listing.wrong.push_back(name);
      row.emplace_back(agrees);
    }
    listing.table.add(std::move(row));
    ++listing.done;
  }
  return listing;
}

std::string heading() {
  const kernels::Cpu& cpu = kernels::cpu();
  return fmt::format("{}: {} core{}, L1 {} KiB, L2 {} KiB, L3 {} KiB; twins for {}\n\n", cpu.model, cpu.cores,
                     cpu.cores == 1 ? "" : "s", cpu.l1_bytes >> 10, cpu.l2_bytes >> 10, cpu.l3_bytes >> 10,
                     name(cpu.best));
}

std::string verdict(const Listing& listing) {
  const std::size_t all = listing.done;
  if (listing.wrong.empty())
    return all == 1 ? "\n1 kernel agrees with its truth\n" : fmt::format("\n{} kernels agree with their truth\n", all);
  return fmt::format("\n{} of {} kernels DISAGREE with their truth: {}\n", listing.wrong.size(), all,
                     fmt::join(listing.wrong, ", "));
}

int run(const Options& o) {
  const InterruptPoller interrupts;
  const Kernels all = chosen(used_here(), o.only);
  std::vector<kernels::TimedKernel> subjects;
  if (o.speed) subjects = timed(o.only);
  std::string text = heading(), missing;
  nlohmann::ordered_json whole;
  int status = 0;
  if (o.check || !o.speed) {
    const Listing listing = listed(all, o.check, interrupts);
    status = listing.wrong.empty() ? 0 : 1;
    text += listing.table.text() + (o.check ? verdict(listing) : "") + (o.speed ? "\n" : "");
    whole[o.speed ? "checks" : "kernels"] = listing.table.object()["kernels"];
    if (listing.done < all.size()) missing = fmt::format("{} of {} kernels are there", listing.done, all.size());
  }
  if (o.speed && missing.empty()) {
    const Speeds table = speeds(subjects, cpu_to_time(o.last_cache), o.threads, interrupts);
    text += o.threads.empty()
                ? "As a fraction of the best plain loop with the same mix of reads and writes; its own speed is from "
                  "memory\n\n"
                : "From memory; the limit is the best plain loop with the same mix of reads and writes and as many "
                  "threads\n\n";
    text += table.summary.text();
    whole["kernels"] = table.all.object()["kernels"];
    if (table.timed < table.wanted) missing = fmt::format("{} of {} timings are there", table.timed, table.wanted);
  }
  if (!missing.empty()) whole["interrupted"] = missing;
  write_output("", o.json ? json_text(whole) : text);
  if (!missing.empty()) throw std::runtime_error("interrupted: " + missing);
  return status;
}

const RegisteredCommand kernels_command("kernels", "Lists, checks and times the arithmetic that this machine will use",
                                        "trellis kernels\n"
                                        "trellis kernels cast.f32 --check\n"
                                        "trellis kernels reduce --speed\n"
                                        "trellis kernels adamw --speed --threads 1,2,4,8\n"
                                        "trellis kernels --check --speed --json",
                                        add, run);

}  // namespace
}  // namespace trellis::tools
