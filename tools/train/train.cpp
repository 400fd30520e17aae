// trellis train: trains a model as a configuration says, as one rank of a launched job or alone.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "ccl/communicator.h"
#include "ccl/rendezvous/environment.h"
#include "sim/cluster/machine/rank_capacity.h"
#include "text/nearest.h"
#include "text/refuse.h"
#include "tools/answer/timeline_file.h"
#include "tools/program/command.h"
#include "tools/program/interrupt_poller.h"
#include "tools/program/output.h"
#include "tools/program/progress.h"
#include "tools/train/config_file.h"
#include "tools/train/loss_curve.h"
#include "tools/train/neuron_environment.h"
#include "tools/train/run/plugins.h"
#include "tools/train/run/step_profiler.h"
#include "train/config/apply_config_keys.h"
#include "train/trainer/trainer.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> changes, plugins;
  std::string curve, machine, profile;
  std::int64_t profile_step = 3;
  bool keys = false;
  bool quiet = false;
  bool retry_failed = false, no_cache = false, force = false;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Trains a model as CONFIG.yaml says, whose keys are those of NxD Training. Under `trellis launch`, torchrun, "
      "mpirun\n"
      "or srun each process is a rank; without them it trains alone. SIGINT and SIGTERM end it after the step, with a\n"
      "checkpoint; before the first step, at once.");
  app.add_option("config", o.config, "The configuration");
  app.add_option("--set", o.changes, "Changes a key: data.seq_length=128");
  app.add_option("--curve", o.curve, "The loss as SVG [loss.svg in the run's folder]");
  app.add_option("-m,--machine", o.machine,
                 "The machine, as for `trellis sim`, whose peak FLOP/s MFU is relative to [trainer.peak_tflops]");
  add_plugins(app, o.plugins);
  app.add_option(
      "--profile", o.profile,
      fmt::format("When each operation of a step ran, on each of the first 16 ranks: {}; or FILE.svg", timeline_help));
  app.add_option("--profile-step", o.profile_step, "The step of this run that --profile shows")->capture_default_str();
  app.add_flag("--keys", o.keys, "Lists the keys");
  app.add_flag("--retry-failed", o.retry_failed, "Tries again what the cache of steps remembers as failed");
  app.add_flag("--no-cache", o.no_cache, "Neither reads nor writes a cache of steps");
  app.add_flag("--force", o.force, "Resumes although the checkpoint is of another configuration or other data");
  app.add_flag("--quiet", o.quiet, "Do not print a line for each step");
}

void print(const std::string& text) { write_output("", text + "\n"); }

std::string line_of(const train::StepRecord& r, std::int64_t steps) {
  std::string text = fmt::format("step {}/{}  loss {:.4f}  lr {:.3g}", r.step, steps, r.loss, r.learning_rate);
  if (r.gradient_norm > 0) text += fmt::format("  norm {:.3f}", r.gradient_norm);
  if (r.parameter_norm > 0) text += fmt::format("  parameters {:.3f}", r.parameter_norm);
  text += fmt::format("  {:.0f} tokens/s  {:.1f} GFLOP/s", r.tokens_per_second, r.flops_per_second / 1e9);
  if (!std::isnan(r.mfu)) text += fmt::format("  MFU {:.3g}%  HFU {:.3g}%", 100 * r.mfu, 100 * r.hfu);
  if (!std::isnan(r.validation_loss)) text += fmt::format("  validation loss {:.4f}", r.validation_loss);
  if (r.slow_rank >= 0) text += fmt::format("  rank {} is slow", r.slow_rank);
  return text;
}

// A resumed run's earlier losses come from its metrics.csv.
void write_curve(const std::string& path, const train::JobConfig& job, const std::vector<train::StepRecord>& history) {
  std::vector<LossLine> lines{{.name = job.step.name, .points = {}}, {.name = "validation", .points = {}}};
  const auto begin = static_cast<double>(history.front().step);
  if (begin > 1 && !job.experiment.directory.empty()) {
    const std::vector<LossLine> before = losses_of(job.experiment.directory + "/" + job.step.name);
    for (std::size_t i = 0; i < before.size(); ++i)
      std::ranges::copy_if(before[i].points, std::back_inserter(lines[i].points),
                           [&](const auto& point) { return point.first < begin; });
  }
  for (const train::StepRecord& r : history) {
    lines[0].points.emplace_back(static_cast<double>(r.step), r.loss);
    if (!std::isnan(r.validation_loss)) lines[1].points.emplace_back(static_cast<double>(r.step), r.validation_loss);
  }
  if (lines[1].points.empty()) lines.pop_back();
  write_output(path, loss_curve(fmt::format("loss of {}", job.step.name), lines));
}

// Shows progress on rank 0's terminal, between the lines of steps. Elsewhere these lines say enough.
class ProgressBar : public train::Callback {
 public:
  explicit ProgressBar(bool wanted) : progress_(0, wanted) {}
  void on_train_start(train::TrainState& state) override {
    begin_ = state.step;
    progress_.restart();
  }
  void on_train_batch_end(train::TrainState& state, const train::StepRecord& r) override {
    const std::int64_t all = state.config.trainer.max_steps;
    progress_.say(fmt::format("step {}/{}, loss {:.4f}", r.step, all, r.loss),
                  static_cast<double>(r.step - begin_) / static_cast<double>(all - begin_));
  }
  void clear() { progress_.clear(); }

 private:
  Progress progress_;
  std::int64_t begin_ = 0;
};

int train_here(const Options& o, ReadConfig read) {
  const InterruptPoller interrupts;
  std::optional<EndedBySignals> before_steps(std::in_place);  // nothing is there yet that a checkpoint would keep
  const ccl::LaunchedProcess launched = ccl::launched_from_environment();
  if (launched.rank == 0 && !o.curve.empty()) expect_writable(o.curve);
  if (launched.rank == 0) StepProfiler::expect_file(o.profile);
  const ccl::Config config = ccl::config_from_environment();
  const auto store = ccl::store_from_environment(launched, ccl::Clock::now() + config.timeout);
  const auto world = ccl::Communicator::create(store, launched.rank, launched.ranks, config);
  const bool first = launched.rank == 0;
  complete_batch(read, world->ranks());
  train::JobConfig job = read.job;
  std::vector<std::string> notes = apply_neuron_environment(job, [](const char* name) { return std::getenv(name); });
  if (job.experiment.cache.empty() && !job.experiment.directory.empty())
    job.experiment.cache = job.experiment.directory + "/steps";
  if (o.no_cache) job.experiment.cache = "";
  job.experiment.retry_failed = o.retry_failed;
  job.experiment.force = o.force;
  if (!o.machine.empty())
    job.trainer.peak_tflops =
        sim::rank_flops(sim::machine_named(o.machine), job.step.precision != train::Precision::fp32) / 1e12;
  notes.insert(notes.begin(), read.notes.begin(), read.notes.end());
  if (first && !notes.empty()) print(list_of(notes));
  const auto bar = std::make_shared<ProgressBar>(first && !o.quiet && isatty(STDERR_FILENO) == 1);
  const auto show = [&](const std::string& text) {
    bar->clear();
    print(text);
  };
  train::TrainerParts parts{.hooks = {.begin = [&](std::int64_t) { before_steps.reset(); },
                                      .step =
                                          [&](const train::StepRecord& r) {
                                            if (!o.quiet) show(line_of(r, job.trainer.max_steps));
                                          },
                                      .say = show,
                                      .stop = [&] { return interrupts.asked(); }}};
  parts.callbacks.push_back(bar);
  const auto profile = std::make_shared<StepProfiler>(o.profile, o.profile_step);
  if (!o.profile.empty()) parts.callbacks.push_back(profile);
  const train::TrainingResult result = train::Trainer(job, *world, parts).fit();
  world->finalize();
  if (!first) return 0;
  if (!o.profile.empty() && profile->table().empty())
    print(fmt::format("--profile-step {}: this run had {} steps", o.profile_step, result.history.size()));
  else if (!o.profile.empty())
    print(fmt::format("{}profile: {}", profile->table(), o.profile));
  if (result.stopped) print(fmt::format("stopped after step {}", result.last_step));
  const std::string folder = read.job.experiment.directory;
  const std::string curve =
      !o.curve.empty() || folder.empty() ? o.curve : folder + "/" + read.job.step.name + "/loss.svg";
  if (curve.empty() || result.history.empty()) return 0;
  write_curve(curve, read.job, result.history);
  print(fmt::format("loss curve: {}", curve));
  return 0;
}

int run(const Options& o) {
  load_plugins(o.plugins);
  if (o.keys) {
    std::string text;
    for (const std::string& key : train::known_keys()) text += key + "\n";
    write_output("", text);
    return 0;
  }
  if (o.config.empty()) throw std::invalid_argument("trellis train: config is required; see `trellis train --help`");
  std::vector<std::string> below;  // the commands of train
  constexpr std::string_view prefix = "train ";
  for (const Command& c : commands())
    if (c.path.starts_with(prefix) && c.path.find(' ', prefix.size()) == c.path.npos)
      below.push_back(c.path.substr(prefix.size()));
  const std::string meant = text::did_you_mean(o.config, below);
  if (!meant.empty() && !std::filesystem::exists(o.config))
    text::refuse("trellis train has no command or file '{}'{}", o.config, meant);
  return train_here(o, read_config(o.config, o.changes));
}

const RegisteredCommand trains(
    "train", "Trains a language model; lays a training step out, draws and exports it",
    "trellis train examples/llama.yaml\n"
    "trellis launch -n 2 -- trellis train examples/llama.yaml --set distributed_strategy.tensor_model_parallel_size=2\n"
    "trellis train show examples/llama.yaml --ranks 2",
    add, run);

}  // namespace
}  // namespace trellis::tools
