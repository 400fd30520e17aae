// trellis train generate: text of a checkpoint.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "ccl/communicator.h"
#include "text/number.h"
#include "text/printable.h"
#include "text/words.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/train/checkpoint/source_config.h"
#include "train/checkpoint/save.h"
#include "train/trainer/own_threads.h"
#include "train/whole/generation.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string from, config, prompt, tokens, ends;
  std::vector<std::string> changes;
  std::size_t count = 64;
  train::Sampling sampling;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Continues a prompt with a checkpoint, or a folder of Hugging Face: keys and values of what came before are "
      "kept,\n"
      "so that each new token takes one pass. Text is read and written as bytes, as training reads it; of a model "
      "with\n"
      "a tokenizer, give and get tokens by number. Under `trellis launch` and the like each process is a rank of the\n"
      "layout that --set names: tensor and pipeline parallel.");
  app.add_option("checkpoint", o.from, "A tag's folder, a .safetensors file, or a folder of Hugging Face")->required();
  app.add_option("-p,--prompt", o.prompt, "Text, as bytes");
  app.add_option("--tokens", o.tokens, "Or the prompt's tokens by number: \"1 15043 29892\"; then numbers are printed");
  app.add_option("-n,--count", o.count, "New tokens at most")->check(above_zero())->capture_default_str();
  app.add_option("--temperature", o.sampling.temperature, "0: always the most probable token")->capture_default_str();
  app.add_option("--top-k", o.sampling.top_k, "Of so many of the most probable tokens; 0: of all")
      ->capture_default_str();
  app.add_option("--top-p", o.sampling.top_p, "Of the fewest that are so probable together")->capture_default_str();
  app.add_option("--seed", o.sampling.seed, "What is drawn is decided by it")->capture_default_str();
  app.add_option("--end", o.ends, "Tokens by number, of which any ends the text: \"2\"");
  app.add_option("--config", o.config, "The model's configuration, where the checkpoint does not say it");
  app.add_option("--set", o.changes, "Changes a key: distributed_strategy.tensor_model_parallel_size=2");
}

std::vector<std::int32_t> numbers(const char* option, std::string text) {
  std::ranges::replace(text, ',', ' ');
  std::vector<std::int32_t> all;
  for (const std::string_view word : text::words(text)) {
    const auto n = text::number<std::int32_t>(word);
    if (!n || *n < 0) throw std::invalid_argument(fmt::format("{}: '{}' is no token's number", option, word));
    all.push_back(*n);
  }
  return all;
}

std::vector<std::int32_t> prompt_of(const Options& o) {
  if (o.prompt.empty() == o.tokens.empty()) throw std::invalid_argument("expected --prompt TEXT, or --tokens NUMBERS");
  if (!o.tokens.empty()) return numbers("--tokens", o.tokens);
  std::vector<std::int32_t> bytes;
  for (unsigned char c : o.prompt) bytes.push_back(c);
  return bytes;
}

// Bytes of a text as whole characters: a model may write bytes that are no text, which a terminal must not get.
class Characters {
 public:
  std::string add(char byte) {
    if (!begun_.empty() && (static_cast<unsigned char>(byte) & 0xC0) != 0x80) {
      const std::string broken = rest();
      return broken + add(byte);
    }
    begun_ += byte;
    const auto first = static_cast<unsigned char>(begun_.front());
    const std::size_t length = first < 0xC2 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 1;
    return begun_.size() < length ? "" : rest();
  }
  std::string rest() {
    const std::string text = std::exchange(begun_, "");
    return text == "\n" || text == "\t" ? text : text::printable(text);
  }

 private:
  std::string begun_;
};

int run(const Options& o) {
  const std::vector<std::int32_t> prompt = prompt_of(o), ends = numbers("--end", o.ends);
  o.sampling.check();
  const train::TensorSource source(o.from);
  const train::JobConfig job = config_of_source(source, o.from, o.config, o.changes).job;
  const bool text = o.tokens.empty();
  if (text && job.step.model.vocab_size > 256)
    throw std::invalid_argument(fmt::format(
        "the vocabulary has {} tokens, which are no bytes: expected --tokens NUMBERS", job.step.model.vocab_size));
  const auto world = ccl::Communicator::from_environment();
  train::Generation generation(job.step, *world, prompt.size() + o.count, train::own_threads(*world));
  train::load_parameters(generation.step(), generation.runner(), source);
  const bool first = world->rank() == 0;
  if (first && text) write_output("", o.prompt);
  std::size_t written = 0;
  Characters characters;
  generation.generate(prompt, o.count, o.sampling, ends, [&](std::int32_t token) {
    if (!first) return;
    write_output("",
                 text ? characters.add(static_cast<char>(token)) : fmt::format("{}{}", written == 0 ? "" : " ", token));
    ++written;
  });
  if (first && text) write_output("", characters.rest());
  if (first) write_output("", "\n");
  world->finalize();
  return 0;
}

const Registered generates(
    command("train generate", "Continues a prompt with a checkpoint",
            "trellis train generate runs/llama/checkpoints/step_00000100 -p \"A collective is\"\n"
            "trellis train generate Llama-3.2-1B --tokens \"128000 791 6864\" -n 32 --temperature "
            "0.7 --top-p 0.9",
            add, run));

}  // namespace
}  // namespace trellis::tools
