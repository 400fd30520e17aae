// trellis train eval: the loss of a checkpoint on data.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "ccl/communicator.h"
#include "tools/program/command.h"
#include "tools/program/json_text.h"
#include "tools/program/output.h"
#include "tools/train/checkpoint/source_config.h"
#include "train/trainer/evaluate.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string from, config;
  std::vector<std::string> data, changes;
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "The loss of a checkpoint, or of a folder of Hugging Face, on data: of each token that counts, given those "
      "before\n"
      "it in its sequence. Sequences are as long as those of training (data.seq_length), or as the model takes, 1,024 "
      "at\n"
      "most. Under `trellis launch`, torchrun, mpirun or srun each process is a rank of the layout that --set names.");
  app.add_option("checkpoint", o.from, "A tag's folder, a .safetensors file, or a folder of Hugging Face")->required();
  app.add_option("-d,--data", o.data, "Files of text or tokens, as data.val_path has them [that of --config]");
  app.add_option("--config", o.config, "The model's configuration, where the checkpoint does not say it");
  app.add_option("--set", o.changes, "Changes a key: data.seq_length=128, trainer.limit_val_batches=10");
  app.add_flag("--json", o.json, "Print JSON");
}

int run(const Options& o) {
  const train::CheckpointReader source(o.from);
  ReadConfig read = config_of_source(source, o.from, o.config, o.changes);
  train::JobConfig& job = read.job;
  if (!o.data.empty()) job.data.val_path = o.data;
  if (job.data.val_path.empty()) throw std::invalid_argument("--data is missing: expected a file of text or tokens");
  const auto world = ccl::Communicator::from_environment();
  // The batch must be a multiple of a micro-batch for each data-parallel rank.
  const std::size_t together = job.step.sequences_together(world->ranks());
  if (together > 0 && job.step.global_batch_size % together != 0) job.step.global_batch_size = together;
  const train::EvaluationResult e = train::evaluate(job, *world, source);
  const bool first = world->rank() == 0;
  world->finalize();
  if (!first) return 0;
  const bool tokens_alone = !std::isnan(e.perplexity);
  if (o.json) {
    nlohmann::ordered_json said{{"loss", e.loss}};
    if (tokens_alone) said["perplexity"] = e.perplexity;
    said["sequences"] = e.sequences, said["seq_length"] = job.step.seq_length, said["data"] = job.data.val_path;
    write_output("", json_text(said));
    return 0;
  }
  const std::string perplexity = tokens_alone ? fmt::format(", perplexity {:.4f}", e.perplexity) : "";
  write_output("", fmt::format("loss {:.4f}{}: {} sequences of {} tokens of {}\n", e.loss, perplexity, e.sequences,
                               job.step.seq_length, fmt::join(job.data.val_path, ", ")));
  return 0;
}

const RegisteredCommand evaluates("train eval", "The loss of a checkpoint on data",
                                  "trellis train eval runs/llama/checkpoints/step_00000100 --data README.md\n"
                                  "trellis train eval Llama-3.2-1B --data held_out.bin --set data.token_bytes=4",
                                  add, run);

}  // namespace
}  // namespace trellis::tools
