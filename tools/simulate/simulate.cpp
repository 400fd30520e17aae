// trellis simulate: hands over to the Python package, which runs PyTorch jobs.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tools/program/command.h"
#include "tools/program/typed_words.h"

namespace trellis::tools {
namespace {

// All are passed on as they are typed.
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
  app.add_option(
      "--device", o.device,
      "any: scripts that say \"neuron\" or \"cuda\"; neuron, cuda: where libraries look for one, the other is not "
      "there;\ncpu: scripts that compute on the host, which run for real [any]");
  app.add_option("--step", o.step,
                 "The step to record [2: the first fills caches; 3 with DistributedDataParallel, which arranges "
                 "buckets]");
  app.add_option("--routing", o.routing,
                 "How tokens go to experts, which data would say: uniform; or skew=S, expert i as often as (i+1)^-S");
  app.add_option("--era", o.era, "Of the machine's software, as in trellis sim");
  app.add_option("-o,--output", o.outputs,
                 "File of the answer: .html a page, .svg a picture, .json, .trace.json for Perfetto, .txt; repeatable")
      ->allow_extra_args(false);
  app.add_option("--record", o.record, "File for the record, to price again with --read");
  app.add_option("--read", o.read, "A record's file, instead of a job");
  app.add_option("--against", o.against, "A record's file: what changed since then");
  app.add_option("--dp", o.dp, "As with so many ranks along the axis of data parallelism, by rules");
  app.add_option("--resize", o.resize, "AXIS=N: the same for another axis; repeatable")->allow_extra_args(false);
  app.add_option("--workload", o.workload, "File for a workload of trellis sim");
  app.add_option("--chakra", o.chakra, "NAME of Chakra traces, NAME.0.et and so on, one for each rank");
  app.add_option("job", o.job, "The job's command, after --: torchrun, python, accelerate launch");
}

// The package of a build tree stands beside the program.
void find_package() {
  std::error_code absent;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", absent).parent_path() / "python";
  if (absent || !std::filesystem::exists(beside / "trellis" / "simulate", absent)) return;
  const char* path = std::getenv("PYTHONPATH");
  setenv("PYTHONPATH", (beside.string() + (path != nullptr ? std::string(":") + path : "")).c_str(), 1);
}

bool has_packages(const std::string& python) {
  const pid_t child = fork();
  if (child == 0) {
    const char* code =
        "import sys; from importlib.util import find_spec as f; sys.exit(not (f('trellis') and f('trellis._native') "
        "and f('torch')))";
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(127);
    execlp(python.c_str(), python.c_str(), "-c", code, nullptr);
    _exit(127);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int run(const Options&) {
  find_package();
  const char* named = std::getenv("TRELLIS_PYTHON");
  const bool is_named = named != nullptr && *named != '\0';
  std::vector<std::string> candidates{"python3", "python"};
  if (is_named) candidates = {named};
  for (const std::string& python : candidates) {
    if (!has_packages(python)) continue;
    std::vector<std::string> words{python, "-m", "trellis.simulate"};
    const std::vector<std::string> typed = typed_words();
    const auto own = std::ranges::find(typed, "simulate");
    words.insert(words.end(), own == typed.end() ? own : own + 1, typed.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(python.c_str(), arguments.data());
  }
  fmt::print(stderr,
             "trellis simulate: {} has the packages trellis and torch: pip install 'trellis[torch]', or set "
             "TRELLIS_PYTHON to an interpreter that has them\n",
             is_named ? fmt::format("'{}' is no interpreter that", named) : "neither python3 nor python");
  return 2;
}

const Registered simulate(command<Options>(
    "simulate", "A PyTorch job's step on machines that aren't there",
    "trellis simulate --machine \"trn2.48xlarge x 2\" --world 128 -- torchrun train.py --config llama.toml\n"
    "trellis simulate --device cpu --world 8 -o answer.html -- torchrun examples/torch/fsdp2.py\n"
    "trellis simulate --read job.record --machine \"trn2.48xlarge x 8\"",
    add, run));

}  // namespace
}  // namespace trellis::tools
