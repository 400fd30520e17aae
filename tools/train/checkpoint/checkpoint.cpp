// trellis train checkpoint: what a checkpoint has, whether it is whole, its weights as one file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "measure/bench_names.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/program/table.h"
#include "tools/train/checkpoint/source_config.h"
#include "tools/train/config_file.h"
#include "train/checkpoint/hf_export.h"
#include "train/checkpoint/reshard.h"
#include "train/checkpoint/save_load.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string path, output;
  bool json = false;
  train::AdapterMergeOptions merge = {};
};

void add(CLI::App& app, Options& o) {
  app.add_option("checkpoint", o.path, "A tag's folder, a .safetensors file, or a folder of Hugging Face")->required();
}

void add_show(CLI::App& app, Options& o) {
  add(app, o);
  app.add_flag("--json", o.json, "Print JSON");
}

int show(const Options& o) {
  const train::CheckpointReader source(o.path);
  Table table("tensors", {left("tensor"), left("type"), {"rows"}, {"columns"}});
  for (const std::string& name : source.names()) {
    const train::TensorSlice whole = source.whole(name);
    table.add({name, std::string(kernels::name(source.type(name))), static_cast<std::int64_t>(whole.rows),
               static_cast<std::int64_t>(whole.columns)});
  }
  const train::TagInfo& info = source.info();
  const std::string head =
      info.files.empty() ? ""
                         : fmt::format("step {}, saved as {}, {} files\n", info.step, info.layout, info.files.size());
  write_output("", o.json ? table.json() : head + table.text());
  return 0;
}

int verify(const Options& o) {
  const train::CheckpointReader source(o.path);
  write_output("", fmt::format("{} tensors are as they were written\n", source.verify()));
  return 0;
}

void add_weights(CLI::App& app, Options& o) {
  add(app, o);
  app.add_option("-o,--output", o.output, "The .safetensors file")->required()->check(output_file());
  app.add_flag("--merge", o.merge.merge, "Adds adapters (LoRA) to the weights that they stand beside");
  app.add_option("--lora-alpha", o.merge.alpha, "The adapters' alpha, if the checkpoint does not say it");
}

int weights(const Options& o) {
  train::export_weights(train::CheckpointReader(o.path), o.output, o.merge);
  return 0;
}

struct HfOptions {
  std::string from, output, like, config, size = "5GB";
  std::vector<std::string> changes;
  train::HfExportOptions to;
};

void add_hf(CLI::App& app, HfOptions& o) {
  app.description(
      "Writes a checkpoint as a folder of Hugging Face, which from_pretrained reads: config.json, weights in files of\n"
      "safetensors with their index, and the tokenizer's files of the folder that the run began with (model.hf).");
  app.add_option("checkpoint", o.from, "A tag's folder, a .safetensors file, or a folder of Hugging Face")->required();
  app.add_option("-o,--output", o.output, "The folder, which is new or empty")->required();
  app.add_option("--like", o.like,
                 "A folder of Hugging Face to take config.json and the tokenizer from [model.hf of the run]");
  app.add_option("--type", o.to.type, "f32, bf16 or f16; f32 takes the master weights where there are any [as saved]");
  app.add_option("--file-size", o.size, "Largest size of a file of weights")->capture_default_str();
  app.add_flag("--merge", o.to.merge.merge, "Adds adapters (LoRA) to the weights that they stand beside");
  app.add_option("--lora-alpha", o.to.merge.alpha, "The adapters' alpha, if the checkpoint does not say it");
  app.add_option("--config", o.config, "The model's configuration, where the checkpoint does not say it");
  app.add_option("--set", o.changes, "Changes a key of it: model.architecture=gpt_neox");
}

int hf(const HfOptions& o) {
  const train::CheckpointReader source(o.from);
  const train::JobConfig job = config_of_source(source, o.from, o.config, o.changes).job;
  train::HfExportOptions to = o.to;
  to.like = o.like;
  to.file_bytes = measure::parse_bytes(o.size);
  if (to.like.empty() && !job.experiment.hf.empty() && std::filesystem::exists(job.experiment.hf))
    to.like = job.experiment.hf;
  const std::vector<std::string> files = train::export_hf(source, job.step, o.output, to);
  write_output("", fmt::format("{}: {}{}\n", o.output, fmt::join(files, ", "),
                               to.like.empty() ? "; no tokenizer, as --like names no folder" : ""));
  return 0;
}

struct ReshardOptions {
  std::string from, config, output;
  std::vector<std::string> changes;
  int ranks = 0;
};

void add_reshard(CLI::App& app, ReshardOptions& o) {
  app.description(
      "Writes a checkpoint anew, cut for another layout: tensor, pipeline and data-parallel ranks, ZeRO-1, precision.\n"
      "`trellis train` loads any layout by itself; this makes one whose ranks each read their own file alone.");
  app.add_option("checkpoint", o.from, "A tag's folder, a .safetensors file, or a folder of Hugging Face")->required();
  app.add_option("config", o.config, "The configuration of the new layout")->required();
  app.add_option("--set", o.changes, "Changes a key: distributed_strategy.tensor_model_parallel_size=4");
  app.add_option("-n,--ranks", o.ranks, "Ranks in all")->required()->check(above_zero());
  app.add_option("-o,--output", o.output, "The folder in which to write the tag's folder")->required();
}

int reshard(const ReshardOptions& o) {
  const train::CheckpointReader source(o.from);
  const auto tag = train::reshard(source, read_config(o.config, o.changes).job.step, o.ranks, o.output);
  write_output("", fmt::format("{}: {}, was {}\n", tag.string(), train::read_done(tag).layout,
                               source.info().layout.empty() ? "weights" : source.info().layout));
  return 0;
}

const RegisteredCommand group({.path = "train checkpoint",
                               .summary = "Checkpoints of training jobs",
                               .examples = "trellis train checkpoint show runs/llama/checkpoints/step_00000100"});
const RegisteredCommand shows("train checkpoint show", "Lists the tensors of a checkpoint",
                              "trellis train checkpoint show runs/llama/checkpoints/step_00000100", add_show, show);
const RegisteredCommand verifies("train checkpoint verify", "Checks every checksum of a checkpoint",
                                 "trellis train checkpoint verify runs/llama/checkpoints/step_00000100", add, verify);
const RegisteredCommand reshards(
    "train checkpoint reshard", "Cuts a checkpoint anew for another layout",
    "trellis train checkpoint reshard runs/llama/checkpoints/step_00000100 examples/llama.yaml -n 4 --set "
    "distributed_strategy.tensor_model_parallel_size=4 -o runs/four/checkpoints",
    add_reshard, reshard);
const RegisteredCommand hfs("train checkpoint hf", "Writes a checkpoint as a folder of Hugging Face",
                            "trellis train checkpoint hf runs/llama/checkpoints/step_00000100 -o llama-trained", add_hf,
                            hf);
const RegisteredCommand exports(
    "train checkpoint weights", "Writes the weights as one safetensors file",
    "trellis train checkpoint weights runs/llama/checkpoints/step_00000100 -o llama.safetensors", add_weights, weights);

}  // namespace
}  // namespace trellis::tools
