// trellis train checkpoint: what a checkpoint has, whether it is whole, its weights as one file.
#include <fmt/format.h>

#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/table.h"
#include "train/checkpoint/save.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string path, output;
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.add_option("checkpoint", o.path, "A tag's folder, or a .safetensors file")->required();
}

void add_show(CLI::App& app, Options& o) {
  add(app, o);
  app.add_flag("--json", o.json, "Print JSON");
}

int show(const Options& o) {
  const train::TensorSource source(o.path);
  Table table("tensors", {{.name = "tensor", .align = Align::left},
                          {.name = "type", .align = Align::left},
                          {.name = "rows"},
                          {.name = "columns"}});
  for (const std::string& name : source.names()) {
    const train::Slice whole = source.whole(name);
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
  const train::TensorSource source(o.path);
  write_output("", fmt::format("{} tensors are as they were written\n", source.verify()));
  return 0;
}

void add_weights(CLI::App& app, Options& o) {
  add(app, o);
  app.add_option("-o,--output", o.output, "The .safetensors file")->required();
}

int weights(const Options& o) {
  train::export_weights(train::TensorSource(o.path), o.output);
  return 0;
}

const Registered group({.path = "train checkpoint",
                        .summary = "Checkpoints of training jobs",
                        .examples = "trellis train checkpoint show runs/llama/checkpoints/step_00000100"});
const Registered shows(command("train checkpoint show", "Lists the tensors of a checkpoint",
                               "trellis train checkpoint show runs/llama/checkpoints/step_00000100", add_show, show));
const Registered verifies(command("train checkpoint verify", "Checks every checksum of a checkpoint",
                                  "trellis train checkpoint verify runs/llama/checkpoints/step_00000100", add, verify));
const Registered exports(
    command("train checkpoint weights", "Writes the weights as one safetensors file",
            "trellis train checkpoint weights runs/llama/checkpoints/step_00000100 -o llama.safetensors", add_weights,
            weights));

}  // namespace
}  // namespace trellis::tools
