// trellis play: plays a workload, a trace or a schedule from a file on a simulated machine.
#include "tools/sim/play_file.h"

#include <fmt/format.h>

#include "tools/answer/machine_typed.h"
#include "tools/answer/timeline_file.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"

namespace trellis::tools {
namespace {

void add(CLI::App& app, Playing& o) {
  o.machine = "trn2.48xlarge", o.bytes = "1MiB";
  app.description(fmt::format(
      "Plays a file on a simulated machine: what it takes, how much of the communication nothing hides, what "
      "the time\nhangs on. Collectives share the machine with each other while computation goes on.\n\n"
      "{}\n\n{}",
      workload_grammar, machine_grammar));
  app.add_option("file", o.file.path, "What to play")->required();
  app.add_option("-m,--machine", o.machine, "The machine")->capture_default_str();
  app.add_option("-b,--bytes", o.bytes, "Of a schedule's larger buffer: 8, 64KiB, 1GiB")->capture_default_str();
  app.add_option("-a,--algorithm", o.algorithm, "Algorithm for collectives that name none [the fastest by price]");
  app.add_option("--era", o.era, "The software's generation [the machine's usual one]");
  app.add_option("--what-if", o.what_if, change_grammar);
  app.add_option("--tflops", o.tflops, "TFLOP/s of a rank [its chip's rate in bf16]")->check(above_zero());
  app.add_option("--memory", o.memory, "Memory bandwidth of a rank: 700GB/s [its share of the chip's HBM]");
  add_noise_options(app, o.noise);
  app.add_flag("--in-place", o.in_place, "Read an MSCCL file as in place, if it allows both");
  app.add_option("-o,--output", o.output, timeline_help);
  app.add_flag("--json", o.json, "Print JSON");
}

int run(const Playing& o) {
  Playing whole = o;
  whole.file = typed_file(o.file.path);
  return play_file(whole);
}

const Registered plays(command("play", "Plays a training step or a trace of one on a simulated machine",
                               "trellis play step.txt --machine trn2.48xlarge\n"
                               "trellis play step.txt --machine torus:4x4 --tflops 80 -o step.html\n"
                               "trellis play trace.0.et --machine network.yml --json\n"
                               "trellis play allreduce.xml --machine full:8 --bytes 64MiB",
                               add, run));

}  // namespace
}  // namespace trellis::tools
