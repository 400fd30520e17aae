// trellis train generate: text of a checkpoint.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "ccl/communicator.h"
#include "text/number_parsing.h"
#include "text/printable.h"
#include "text/refuse.h"
#include "text/words.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/train/checkpoint/source_config.h"
#include "tools/train/checkpoint/tokenizer_process.h"
#include "train/checkpoint/save_load.h"
#include "train/step/run.h"
#include "train/trainer/threads_per_rank.h"
#include "train/whole/rank_step.h"
#include "train/whole/text_generator.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string from, config, prompt, tokens, ends, tokenizer;
  std::vector<std::string> changes;
  std::size_t count = 64;
  train::SamplingOptions sampling;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Continues a prompt with a checkpoint, or a folder of Hugging Face: keys and values of what came before are "
      "kept,\n"
      "so that each new token takes one pass. Text is read and written by the folder's tokenizer, as --tokenizer "
      "names\n"
      "it or the checkpoint has it (tokenizer.json or sentencepiece's, by the Python package), or as bytes, as "
      "training\n"
      "reads it. Under `trellis launch` and the like each process is a rank of the layout that --set names: tensor "
      "and\n"
      "pipeline parallel.");
  app.add_option("checkpoint", o.from, "A tag's folder, a .safetensors file, or a folder of Hugging Face")->required();
  app.add_option("-p,--prompt", o.prompt, "Text");
  app.add_option("--tokens", o.tokens, "Or the prompt's tokens by number: \"1 15043 29892\"; then numbers are printed");
  app.add_option("-n,--count", o.count, "New tokens at most")->check(above_zero())->capture_default_str();
  app.add_option("--temperature", o.sampling.temperature, "0: always the most probable token")->capture_default_str();
  app.add_option("--top-k", o.sampling.top_k, "Draw from this many of the most probable tokens; 0: from all")
      ->capture_default_str();
  app.add_option("--top-p", o.sampling.top_p, "Draw from the fewest tokens whose probabilities add up to this")
      ->capture_default_str();
  app.add_option("--seed", o.sampling.seed, "Seed of the draws")->capture_default_str();
  app.add_option("--end", o.ends, "Tokens by number, of which any ends the text: \"2\" [the tokenizer's]");
  app.add_option("--tokenizer", o.tokenizer,
                 "A folder with tokenizer.json or tokenizer.model, or bytes [the checkpoint's]");
  app.add_option("--config", o.config, "The model's configuration, where the checkpoint does not say it");
  app.add_option("--set", o.changes, "Changes a key: distributed_strategy.tensor_model_parallel_size=2");
}

std::vector<std::int32_t> numbers(const char* option, std::string text) {
  std::ranges::replace(text, ',', ' ');
  std::vector<std::int32_t> all;
  for (const std::string_view word : text::words(text)) {
    const auto n = text::number<std::int32_t>(word);
    if (!n || *n < 0) text::refuse("{}: '{}' is no token's number", option, word);
    all.push_back(*n);
  }
  return all;
}

// Without a tokenizer, tokens are bytes, 0 to 255; `trellis.train prepare` ends a document with this one.
constexpr std::int32_t end_of_bytes = 256;

// The folder whose tokenizer reads the prompt; empty, where text is bytes.
std::string tokenizer_folder(const Options& o, const train::JobConfig& job) {
  const bool named = !o.tokenizer.empty() && (o.tokenizer != "bytes" || has_tokenizer(o.tokenizer));
  if (named && !has_tokenizer(o.tokenizer))
    text::refuse("--tokenizer {}: expected tokenizer.json or tokenizer.model in the folder", o.tokenizer);
  if (named) return o.tokenizer;
  for (const std::string& folder : {o.from, job.experiment.hf})
    if (o.tokenizer.empty() && !folder.empty() && has_tokenizer(folder)) return folder;
  if (job.step.model.vocab_size > end_of_bytes + 1)
    text::refuse("the vocabulary has {} tokens, which are no bytes: expected --tokenizer FOLDER, or --tokens NUMBERS",
                 job.step.model.vocab_size);
  return "";
}

// The text as a terminal may get it: control characters are made visible, except newlines and tabs.
std::string shown(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\n\t", at), text.size());
    out += text::printable(text.substr(at, end - at));
    out += text.substr(end, 1);
    at = end + 1;
  }
  return out;
}

// Collects bytes until a UTF-8 character is whole. A model may write bytes that are no text; shown() keeps them from
// the terminal.
class Characters {
 public:
  std::string add(std::int32_t token) {
    if (token >= end_of_bytes) return "";
    const char byte = static_cast<char>(token);
    if (!begun_.empty() && (static_cast<unsigned char>(byte) & 0xC0) != 0x80) {
      const std::string broken = rest();
      return broken + add(token);
    }
    begun_ += byte;
    const auto first = static_cast<unsigned char>(begun_.front());
    const std::size_t length = first < 0xC2 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 1;
    return begun_.size() < length ? "" : rest();
  }
  std::string rest() { return shown(std::exchange(begun_, "")); }

 private:
  std::string begun_;
};

// Turns tokens into text, one by one. Text that ends in an incomplete character is held back until a later token
// completes it.
class Growing {
 public:
  Growing(TokenizerProcess& tokenizer, std::vector<std::int32_t> prompt)
      : tokenizer_(tokenizer), tokens_(std::move(prompt)), said_(tokenizer.text(tokens_)) {}
  std::string add(std::int32_t token) {
    tokens_.push_back(token);
    constexpr std::string_view broken = "\xEF\xBF\xBD";
    return tokenizer_.text(tokens_).ends_with(broken) ? "" : rest();
  }
  std::string rest() {
    const std::string all = tokenizer_.text(tokens_);
    if (!all.starts_with(said_)) return "";
    const std::string more = all.substr(said_.size());
    said_ = all;
    return shown(more);
  }

 private:
  TokenizerProcess& tokenizer_;
  std::vector<std::int32_t> tokens_;
  std::string said_;
};

// Broadcasts rank 0's tokens to all ranks.
std::vector<std::int32_t> of_first_rank(ccl::Communicator& world, std::vector<std::int32_t> tokens) {
  auto n = static_cast<std::int32_t>(tokens.size());
  if (world.ranks() == 1) return tokens;
  world.broadcast(&n, &n, 1, kernels::DType::i32, 0);
  tokens.resize(static_cast<std::size_t>(n));
  if (n > 0) world.broadcast(tokens.data(), tokens.data(), tokens.size(), kernels::DType::i32, 0);
  return tokens;
}

std::vector<std::int32_t> prompt_of(const Options& o, TokenizerProcess* tokenizer) {
  if (!o.tokens.empty()) return numbers("--tokens", o.tokens);
  if (tokenizer != nullptr) return tokenizer->prompt(o.prompt);
  std::vector<std::int32_t> bytes;
  for (unsigned char c : o.prompt) bytes.push_back(c);
  return bytes;
}

int run(const Options& o) {
  if (o.prompt.empty() == o.tokens.empty()) throw std::invalid_argument("expected --prompt TEXT, or --tokens NUMBERS");
  o.sampling.check();
  const train::CheckpointReader source(o.from);
  const train::JobConfig job = config_of_source(source, o.from, o.config, o.changes).job;
  const bool text = o.tokens.empty();
  const std::string folder = text ? tokenizer_folder(o, job) : "";
  const auto world = ccl::Communicator::from_environment();
  const bool first = world->rank() == 0;
  std::unique_ptr<TokenizerProcess> tokenizer;
  if (first && !folder.empty()) tokenizer = std::make_unique<TokenizerProcess>(folder);
  const bool known = first || folder.empty();
  const std::vector<std::int32_t> prompt =
      of_first_rank(*world, known ? prompt_of(o, tokenizer.get()) : std::vector<std::int32_t>());
  std::vector<std::int32_t> ends = numbers("--end", o.ends);
  if (o.ends.empty() && tokenizer) ends = tokenizer->ends();
  if (o.ends.empty() && text && folder.empty()) ends = {end_of_bytes};
  ends = of_first_rank(*world, std::move(ends));
  train::TextGenerator generation(job.step, *world, prompt.size() + o.count,
                                  train::compute_threads(*world, job.trainer.threads));
  train::load_parameters(generation.step(), generation.runner(), source);
  if (first && text) write_output("", o.prompt);
  std::size_t written = 0;
  Characters characters;
  std::optional<Growing> growing;
  if (tokenizer) growing.emplace(*tokenizer, prompt);
  generation.generate(prompt, o.count, o.sampling, ends, [&](std::int32_t token) {
    if (!first) return;
    write_output("", growing ? growing->add(token)
                     : text  ? characters.add(token)
                             : fmt::format("{}{}", written == 0 ? "" : " ", token));
    ++written;
  });
  if (first && text) write_output("", growing ? growing->rest() : characters.rest());
  if (first) write_output("", "\n");
  world->finalize();
  return 0;
}

const RegisteredCommand generates(
    "train generate", "Continues a prompt with a checkpoint",
    "trellis train generate runs/llama/checkpoints/step_00000100 -p \"A collective is\"\n"
    "trellis train generate Llama-3.2-1B -p \"The capital\" -n 32 --temperature 0.7 --top-p 0.9\n"
    "trellis train generate Llama-3.2-1B --tokens \"128000 791 6864\"",
    add, run);

}  // namespace
}  // namespace trellis::tools
