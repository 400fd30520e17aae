#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "sim/core/check/check.h"
#include "sim/core/program/instruction_kind.h"
#include "sim/core/run/run.h"
#include "sim/hardware/figures/model_error_range.h"
#include "sim/hardware/timeline/format_quantities.h"
#include "sim/hardware/timeline/summary.h"
#include "text/refuse.h"
#include "tools/answer/price_progress.h"
#include "tools/answer/timeline_file.h"
#include "tools/core/core_program_options.h"
#include "tools/program/command.h"
#include "tools/program/interrupt_poller.h"
#include "tools/program/json_text.h"
#include "tools/program/output.h"
#include "tools/program/progress.h"
#include "tools/program/provenance.h"

namespace trellis::tools {
namespace {

using namespace sim::core;
using sim::in_us;

struct Options {
  CoreProgramOptions subject;
  bool timing_only = false, json = false;
  std::uint64_t seed = 1;
  std::vector<std::string> inputs, outputs;  // NAME=FILE
  std::string output, sums = "lanes";
};

void add_run(CLI::App& app, Options& o) {
  app.description(
      "Runs a program: the numbers that it computes and the time that it takes at once. One that ships gets random\n"
      "inputs, and its results are held against the host's kernels; the exit status is 1 where they are too far off.\n"
      "A program from a file reads zeros, or files of bytes.");
  add_core_subject(app, o.subject);
  app.add_flag("--timing-only", o.timing_only,
               "Keep time only, without computing values: faster, with the same simulated time");
  app.add_option(
         "--sums", o.sums,
         "In what order rows are summed where nothing is published of it: lanes, 32 partial sums and a tree, as\n"
         "the host's kernels; sequential, from left to right, as tensor_reduce is known to on Trainium 1")
      ->check(CLI::IsMember({"lanes", "sequential"}))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "Seed of the random inputs")->capture_default_str();
  app.add_option("--input", o.inputs, "NAME=FILE: the bytes of an HBM buffer; several times");
  app.add_option("--save", o.outputs, "NAME=FILE: where an HBM buffer's bytes go; several times");
  app.add_flag("--json", o.json, "Print JSON");
}

void add_profile(CLI::App& app, Options& o) {
  app.description(
      "Runs a program for its time, and shows where it went: busy and waiting engines, the critical path, the\n"
      "roofline. -o decides what else is written: .html a page to look at, .pftrace for ui.perfetto.dev.");
  add_core_subject(app, o.subject);
  app.add_option("-o,--output", o.output, timeline_help);
  app.add_flag("--json", o.json, "Print the summary as JSON");
}

// The number of instructions that the engines run: an instruction in a loop counts once an iteration.
std::uint64_t instructions_to_run(const NeuronCoreProgram& program) {
  struct Stream {
    std::uint64_t times = 1;
    std::vector<std::uint64_t> outer;  // `times` before each of the enclosing loops
  };
  std::vector<Stream> streams(static_cast<std::size_t>(program.cores) * engine_count);
  std::uint64_t all = 0;
  for (const Instruction& i : program.instructions) {
    Stream& s = streams.at(stream_of(i));
    all += s.times;
    if (i.kind->control == ControlFlow::loop) {
      s.outer.push_back(s.times);
      s.times *= static_cast<std::uint64_t>(std::max(1.0, BoundInstruction(program, i).number(Key::count)));
    } else if (i.kind->control == ControlFlow::end_loop && !s.outer.empty()) {
      s.times = s.outer.back();
      s.outer.pop_back();
    }
  }
  return all;
}

// Shows how far the run of a long program is, and when it will have ended. Ends it when the user interrupts, with what
// is known by then. Comparing the results is not ended: it takes less time than the run.
class RunProgress final : public InstructionObserver {
 public:
  RunProgress(const NeuronCoreProgram& program, const InterruptPoller& interrupts,
              const std::vector<std::string>& files)
      : name_(program.name), all_(instructions_to_run(program)), interrupts_(interrupts), files_(files) {}

  void issued(std::uint32_t, const std::int64_t*, sim::Time now) override {
    constexpr std::uint64_t seldom = 64;  // instructions between updates: a product takes up to 1 ms of real time
    if (++issued_ % seldom != 0) return;
    if (interrupts_.asked())
      throw std::runtime_error(fmt::format(
          "interrupted: {} takes longer than {}; {} of {} instructions were run{}", name_, sim::time_words(now),
          issued_, all_, files_.empty() ? "" : fmt::format(", and not written: {}", fmt::join(files_, ", "))));
    progress_.say(fmt::format("{}: {} of {} instructions, {} simulated", name_, issued_, all_, sim::time_words(now)),
                  static_cast<double>(issued_) / static_cast<double>(all_));
  }
  void finished(std::uint32_t, sim::Time) override {}
  void compares() { progress_.say(fmt::format("{}: results are held against the host's kernels", name_)); }

 private:
  const std::string name_;
  const std::uint64_t all_;
  const InterruptPoller& interrupts_;
  const std::vector<std::string> files_;  // where results would go
  std::uint64_t issued_ = 0;
  Progress progress_;
};

// The model's error, known from real chips. An ideal chip has none.
sim::ModelErrorRange error_on(const sim::ChipSpec& chip) {
  return chip.name == "ideal" ? sim::ModelErrorRange{} : sim::error_range("kernel");
}

std::string rate_words(double flops) {
  if (flops <= 0) return "no matrix products";
  return flops < 1e10 ? fmt::format("{:.2f} GFLOPS", flops * 1e-9) : fmt::format("{:.2f} TFLOPS", flops * 1e-12);
}

std::string totals_text(const NeuronCoreProgram& p, const RunTotals& t, const sim::ChipSpec& chip) {
  std::string out = fmt::format("{} on {}: {:.3f} us, {} instructions, {} DMA descriptors\n", p.name, chip.name,
                                in_us(t.time), t.instructions, t.descriptors);
  const sim::ModelErrorRange error = error_on(chip);
  if (error.low < error.high)
    out += fmt::format("  between {:.3f} and {:.3f} us, by the error of published kernels\n", in_us(t.time) * error.low,
                       in_us(t.time) * error.high);
  const double seconds = sim::in_seconds(std::max<sim::Time>(t.time, 1));
  out += fmt::format("  DMA {:.1f} GB/s; HBM read {:.1f} MB, written {:.1f} MB; {}\n", t.dma_bytes / seconds * 1e-9,
                     t.hbm_read * 1e-6, t.hbm_written * 1e-6, rate_words(t.flops / seconds));
  for (std::size_t s = 0; s < t.streams.size(); ++s) {
    const StreamTotals& stream = t.streams[s];
    if (stream.instructions == 0) continue;
    const auto percent = [&](sim::Time time) { return 100 * sim::in_seconds(time) / seconds; };
    std::string core = p.cores > 1 ? fmt::format("core {} ", s / engine_count) : "";
    out += fmt::format(
        "  {}{:8} {:>8} instructions, busy {:5.1f}%, waits: semaphore {:.1f}%, data {:.1f}%, port {:.1f}%\n", core,
        name(static_cast<Engine>(s % engine_count)), stream.instructions, percent(stream.busy),
        percent(stream.waited[static_cast<std::size_t>(sim::WaitReason::semaphore)]),
        percent(stream.waited[static_cast<std::size_t>(sim::WaitReason::data)]),
        percent(stream.waited[static_cast<std::size_t>(sim::WaitReason::port)]));
  }
  return out;
}

std::string comparisons_text(const std::vector<Comparison>& all) {
  std::string out;
  for (const Comparison& c : all)
    out += fmt::format("  {}: {} of {} elements beyond {}; farthest {:.3g}\n", c.what, c.wrong, c.elements,
                       c.bound == 0 ? "equality" : fmt::format("the bound of {:.3g}", c.bound), c.worst);
  return out;
}

std::string run_json(const NeuronCoreProgram& p, const RunTotals& t, const sim::ChipSpec& chip,
                     const std::vector<Comparison>& comparisons) {
  nlohmann::ordered_json out;
  out["program"] = p.name;
  out["chip"] = chip.name;
  out["time_ps"] = t.time;
  const sim::ModelErrorRange error = error_on(chip);
  out["time_low_ps"] = static_cast<sim::Time>(static_cast<double>(t.time) * error.low);
  out["time_high_ps"] = static_cast<sim::Time>(static_cast<double>(t.time) * error.high);
  out["instructions"] = t.instructions;
  out["descriptors"] = t.descriptors;
  out["dma_bytes"] = t.dma_bytes;
  out["hbm_read_bytes"] = t.hbm_read;
  out["hbm_written_bytes"] = t.hbm_written;
  out["flops"] = t.flops;
  out["engines"] = nlohmann::ordered_json::array();
  for (std::size_t s = 0; s < t.streams.size(); ++s)
    out["engines"].push_back({{"core", s / engine_count},
                              {"engine", name(static_cast<Engine>(s % engine_count))},
                              {"instructions", t.streams[s].instructions},
                              {"busy_ps", t.streams[s].busy}});
  out["compared"] = nlohmann::ordered_json::array();
  for (const Comparison& c : comparisons)
    out["compared"].push_back(
        {{"what", c.what}, {"elements", c.elements}, {"wrong", c.wrong}, {"worst", c.worst}, {"bound", c.bound}});
  return json_text(out, 1);
}

void read_inputs(const Options& o, CoreMemory& memory) {
  for (const std::string& input : o.inputs) {
    const auto [name, file] = halves(input, "--input", "NAME=FILE");
    const std::span<std::byte> to = memory.hbm(name);
    const std::string bytes = read_input(file);
    if (bytes.size() != to.size()) text::refuse("{}: {} bytes; {} has {}", file, bytes.size(), name, to.size());
    std::memcpy(to.data(), bytes.data(), bytes.size());
  }
}

// The buffers that --save names, each with its file.
std::vector<std::pair<std::string, std::string>> saved(const Options& o) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string& output : o.outputs) {
    const auto [name, file] = halves(output, "--save", "NAME=FILE");
    expect_writable(file);
    all.emplace_back(name, file);
  }
  return all;
}

int run_program(const Options& o) {
  const InterruptPoller interrupts;
  InterruptWatchdog prompt_end(interrupts);  // until the program runs
  if (o.timing_only && !(o.inputs.empty() && o.outputs.empty()))
    text::refuse("{} needs a run that computes: leave out --timing-only", o.inputs.empty() ? "--save" : "--input");
  const auto outputs = saved(o);
  const sim::ChipSpec chip = chip_of(o.subject);
  const NeuronCoreProgram program = program_of(o.subject, chip);
  check(program, chip);
  const ShippedProgram* ships = shipped_of(o.subject);
  std::unique_ptr<CoreMemory> memory;
  if (!o.timing_only) {
    memory = std::make_unique<CoreMemory>(program, chip);
    if (o.sums == "sequential") memory->use_sum_order(SumOrder::sequential);
    if (ships != nullptr && ships->fill != nullptr) ships->fill(arguments_of(o.subject, *ships), *memory, o.seed);
    read_inputs(o, *memory);
    for (const auto& [name, file] : outputs) memory->hbm(name);  // throws for an unknown name
  }
  if (memory) note_origin("seed", std::to_string(o.seed));
  prompt_end.over();
  std::vector<std::string> files;
  for (const auto& [name, file] : outputs) files.push_back(file);
  std::optional<RunProgress> progress(std::in_place, program, interrupts, files);
  const RunTotals totals = run(program, chip, {.memory = memory.get(), .observer = &*progress});
  progress->compares();
  std::vector<Comparison> comparisons;
  if (memory && ships != nullptr && ships->compare != nullptr && o.inputs.empty())
    comparisons = ships->compare(arguments_of(o.subject, *ships), *memory);
  progress.reset();
  for (const auto& [name, file] : outputs) {
    const std::span<std::byte> bytes = memory->hbm(name);
    write_output(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  write_output("", o.json ? run_json(program, totals, chip, comparisons)
                          : totals_text(program, totals, chip) + comparisons_text(comparisons));
  return std::ranges::any_of(comparisons, [](const Comparison& c) { return c.wrong != 0; }) ? 1 : 0;
}

int profile(const Options& o) {
  const InterruptPoller interrupts;
  InterruptWatchdog prompt_end(interrupts);  // until the program runs
  const sim::ChipSpec chip = chip_of(o.subject);
  expect_timeline_file(o.output);
  const NeuronCoreProgram program = program_of(o.subject, chip);
  check(program, chip);
  sim::Timeline timeline;
  prompt_end.over();
  std::optional<RunProgress> progress(std::in_place, program, interrupts,
                                      o.output.empty() ? std::vector<std::string>{} : std::vector{o.output});
  const RunTotals totals = run(program, chip, {.timeline = &timeline, .observer = &*progress});
  progress.reset();
  const sim::HardwarePeaks peaks = peaks_of(chip, program.cores);
  const std::string title = fmt::format("{} on {}", program.name, chip.name);
  if (!o.output.empty()) write_timeline(o.output, timeline, {.title = title, .peaks = peaks});
  const sim::Summary summary = sim::summarize(timeline, peaks);
  write_output("", o.json ? json_text(nlohmann::ordered_json::parse(sim::summary_json(timeline, summary)), 1)
                          : totals_text(program, totals, chip) + sim::summary_text(timeline, summary));
  return 0;
}

const RegisteredCommand registered_run("core run", "Run a program: what it computes, and how long it takes",
                                       "trellis core run adamw --chip trn2\n"
                                       "trellis core run matmul --chip trn1 -p M=512 -p K=512 -p N=512\n"
                                       "trellis core run matmul --timing-only --what-if dma.start=2us\n"
                                       "trellis core run mine.txt --input a=a.bin --save c=c.bin",
                                       add_run, run_program);
const RegisteredCommand registered_profile("core profile", "Show where a program's time goes",
                                           "trellis core profile matmul --chip trn1\n"
                                           "trellis core profile attention -o attention.html\n"
                                           "trellis core profile matmul -o matmul.pftrace",
                                           add_profile, profile);

}  // namespace
}  // namespace trellis::tools
