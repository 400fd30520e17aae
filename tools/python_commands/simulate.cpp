// trellis simulate: execs `python -m trellis.simulate`, which runs PyTorch jobs.
#include "tools/program/command.h"
#include "tools/python_commands/python_command.h"

namespace trellis::tools {
namespace {

// For --help only: all words are passed on as they are typed.
struct Options {
  std::string machine, device, step, routing, era, world, record, read, against, workload, chakra, dp;
  std::vector<std::string> outputs, resize, job;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "A step of an unmodified PyTorch job on machines that aren't there: how long, what is exposed, does it fit.\n\n"
      "The job runs here as a few of its ranks, each in a process that believes to be in the whole world, with "
      "tensors\n"
      "that have no data. Its second step is recorded, proved, priced and reported. The Python package does that: the\n"
      "interpreter is TRELLIS_PYTHON, or the first python3 or python of PATH that has the packages trellis and torch.");
  app.add_option("-m,--machine", o.machine, "As in trellis sim: \"trn2.48xlarge x 4\" [trn2.48xlarge]");
  app.add_option("--world", o.world, "Ranks of the job [as many as the machine has]");
  app.add_option("--device", o.device,
                 "Device that the script finds: any, both \"neuron\" and \"cuda\"; neuron or cuda, that one alone;\n"
                 "cpu, neither: the script computes on the host, for real [any]");
  app.add_option("--step", o.step,
                 "The step to record [2: the first fills caches; 3 with DistributedDataParallel, which arranges "
                 "buckets]");
  app.add_option(
      "--routing", o.routing,
      "How tokens are routed to experts, as data would decide: uniform; or skew=S, expert i in proportion to "
      "(i+1)^-S");
  app.add_option("--era", o.era, "Generation of the machine's software, as in trellis sim");
  app.add_option("-o,--output", o.outputs,
                 "File of the answer: .html a page, .svg a picture, .json, .trace.json for Perfetto, .txt; repeatable");
  app.add_option("--record", o.record, "File for the record, to price again with --read");
  app.add_option("--read", o.read, "A record's file, instead of a job");
  app.add_option("--against", o.against, "Show what changed since this record (a file)");
  app.add_option("--dp", o.dp, "Number of data-parallel ranks to answer for: the record is changed to it by rules");
  app.add_option("--resize", o.resize, "AXIS=N: the same for another axis; repeatable");
  app.add_option("--workload", o.workload, "File for a workload of trellis sim");
  app.add_option("--chakra", o.chakra,
                 "NAME of Chakra traces, NAME.0.et and so on, one for each rank, with NAME.groups.json");
  app.add_option("job", o.job, "The job's command, after --: torchrun, python, accelerate launch");
}

int run(const Options&) { return run_python_command("simulate", "torch", {"torch"}); }

const RegisteredCommand simulate(
    "simulate", "A PyTorch job's step on machines that aren't there",
    "trellis simulate --machine \"trn2.48xlarge x 2\" --world 128 -- torchrun train.py --config llama.toml\n"
    "trellis simulate --device cpu --world 8 -o answer.html -- torchrun examples/torch/fsdp2.py\n"
    "trellis simulate --read job.record --machine \"trn2.48xlarge x 8\"",
    add, run);

}  // namespace
}  // namespace trellis::tools
