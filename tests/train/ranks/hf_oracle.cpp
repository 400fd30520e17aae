// Folders of Hugging Face are read, trained, generated with and written as transformers does: tests/oracles/hf_torch.py
// wrote its results in f64 to tests/oracles/hf_torch.json.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/train/ranks/formulas.h"
#include "tests/train/ranks/runs.h"
#include "tests/why.h"
#include "train/checkpoint/hf_export.h"
#include "train/checkpoint/reshard.h"
#include "train/config/hf/hf_config.h"
#include "train/layers/rope.h"
#include "train/step/run.h"
#include "train/whole/rank_step.h"
#include "train/whole/text_generator.h"

namespace trellis::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* index_name = "model.safetensors.index.json";

const json& golden() {
  static const json all = [] {
    std::ifstream in(std::string(TRELLIS_SOURCE_DIR) + "/tests/oracles/hf_torch.json");
    return json::parse(in);
  }();
  return all;
}

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const auto& [name, said] : golden().items())
    if (said.is_object()) names.push_back(name);
  return names;
}

std::vector<float> values_of(const std::string& name, std::size_t n) {
  const bool bias = name.find("bias") != name.npos;
  const bool norm = name.find("norm") != name.npos || name.find(".ln_") != name.npos;
  const double scale = golden()["scale"];
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double v = pseudo_random(name, i);
    values[i] = static_cast<float>(bias ? 0.1 * v : norm ? 1 + 0.1 * v : scale * v);
  }
  return values;
}

// Writes a folder as save_pretrained does, with weights in so many files.
fs::path put_folder(const Folder& folder, const std::string& family, std::size_t files = 3) {
  const json& said = golden()[family];
  std::vector<std::vector<ShardTensor>> tensors(files);
  std::vector<std::vector<float>> values;
  json map = json::object();
  for (const auto& [name, shape] : said["tensors"].items()) {
    const std::size_t rows = shape[0], columns = shape.size() > 1 ? shape[1].get<std::size_t>() : 1;
    const std::size_t file = values.size() % files;
    values.push_back(values_of(name, rows * columns));
    tensors[file].push_back({name, DType::f32, {rows, columns, 0, rows, 0, columns}, values.back().data()});
    map[name] = fmt::format("model-{}.safetensors", file);
  }
  const fs::path path = folder.path() / family;
  folder.put(family + "/config.json", said["config"].dump());
  folder.put(family + "/tokenizer.json", "{}");
  folder.put(family + "/" + index_name, json{{"weight_map", map}}.dump());
  for (std::size_t i = 0; i < files; ++i) write_shard(path / fmt::format("model-{}.safetensors", i), tensors[i]);
  return path;
}

StepConfig config_of(const fs::path& folder, Rank tensor, Rank pipeline, bool zero, Rank context = 1,
                     bool ring = true) {
  JobConfig job;
  apply_hf_config(job, folder);
  StepConfig c = job.step;
  c.strategy = {.tensor = tensor,
                .pipeline = pipeline,
                .context = context,
                .sequence_parallel = tensor > 1,
                .zero1 = zero,
                .ring_attention = ring};
  c.seq_length = oracle_length, c.global_batch_size = 4;
  c.optimizer.beta2 = 0.95, c.optimizer.epsilon = 1e-8, c.optimizer.weight_decay = 0.1;
  return c;
}

void expect_losses(const std::string& family, Rank tensor, Rank pipeline, bool zero, Rank world, Rank context = 1,
                   bool ring = true) {
  SCOPED_TRACE(fmt::format("{} T{} P{} C{} on {}", family, tensor, pipeline, context, world));
  const Folder folder;
  const fs::path path = put_folder(folder, family);
  const auto losses = golden()[family]["losses"].get<std::vector<double>>();
  const auto norms = golden()[family]["norms"].get<std::vector<double>>();
  expect_on_threads(world, [&](ccl::Communicator& w) {
    Job job(config_of(path, tensor, pipeline, zero, context, ring), w);
    EXPECT_FALSE(load(job, CheckpointReader(path)));
    for (std::uint32_t step = 0; step < losses.size(); ++step) {
      const auto data = static_cast<std::uint32_t>(job.step().mesh.shape().data),
                 place = static_cast<std::uint32_t>(job.step().place.data);
      for (std::uint32_t m = 0; m < job.step().micro_batches; ++m) {
        const auto tokens = tokens_of(step, m * data + place);
        job.set_batch(m, {tokens.data(), tokens.data() + 1});
      }
      const Job::Result r = job.run({.step = step + 1, .learning_rate = 3e-3});
      EXPECT_NEAR(r.loss, losses[step], 1e-4) << "step " << step;
      EXPECT_NEAR(r.norm / norms[step], 1, step == 0 ? 1e-5 : 1e-3) << "step " << step;
    }
  });
}

TEST(HfOracle, LossesAreThoseOfTransformers) {
  EXPECT_EQ(families().size(), 14U);
  for (const std::string& family : families()) {
    expect_losses(family, 1, 1, false, 1);
    expect_losses(family, 2, 2, true, 8);  // a vocabulary of 67 on two ranks
  }
}

TEST(HfOracle, LossesOfSequencesThatRanksShareOutToo) {
  for (const std::string& family : families()) {
    expect_losses(family, 1, 1, true, 4, 4);
    expect_losses(family, 2, 1, true, 8, 2, false);
  }
}

TEST(HfOracle, ADynamicBaseIsThatOfTransformers) {
  const auto expected = golden()["dynamic_rope"].get<std::vector<double>>();
  const Rope rope{.turned = 16, .theta = 5000, .scaling = {.type = "dynamic", .factor = 3}, .positions = 16};
  const std::vector<double> got = rope_frequencies(rope, 64);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i] / expected[i], 1, 1e-6) << i;
  EXPECT_EQ(rope_frequencies(rope, 16), rope_frequencies({.turned = 16, .theta = 5000}, 64));
}

TEST(HfOracle, QueriesThatShareKeysAreNormedOnEachRank) {
  for (const char* family : {"qwen3", "qwen3_moe"}) expect_losses(family, 4, 1, false, 4);
}

TEST(HfOracle, GreedyTokensAreThoseOfTransformers) {
  const Folder folder;
  for (const std::string& family : families()) {
    const fs::path path = put_folder(folder, family);
    for (const auto& [tensor, pipeline] : {std::pair{1, 1}, {2, 2}})
      expect_on_threads(tensor * pipeline, [&](ccl::Communicator& w) {
        for (const char* which : {"short", "long"}) {  // the long prompt begins with a pass over 64 tokens
          const json& said = golden()[family][which];
          const auto prompt = said["prompt"].get<std::vector<std::int32_t>>();
          TextGenerator g(config_of(path, tensor, pipeline, false), w, prompt.size() + said["tokens"].size());
          load_parameters(g.step(), g.runner(), CheckpointReader(path));
          EXPECT_EQ(g.generate(prompt, said["tokens"].size(), {}), said["tokens"].get<std::vector<std::int32_t>>())
              << family << " T" << tensor << " " << which;
        }
      });
  }
}

// Checks every tensor of a written folder: its name, shape and values.
void expect_weights(const fs::path& folder, const std::string& family) {
  const json& said = golden()[family]["tensors"];
  std::size_t found = 0;
  for (const auto& each : fs::directory_iterator(folder)) {
    if (each.path().extension() != ".safetensors") continue;
    const CheckpointReader file(each.path());
    for (const std::string& name : file.names()) {
      ASSERT_TRUE(said.contains(name)) << name;
      const TensorSlice whole = file.whole(name);
      EXPECT_EQ(json(whole.rows), said[name][0]) << name;
      EXPECT_EQ(json(whole.columns), said[name].size() > 1 ? said[name][1] : json(1)) << name;
      std::vector<float> values(whole.elements());
      file.read(name, whole, values.data());
      EXPECT_EQ(values, values_of(name, values.size())) << name;
      ++found;
    }
  }
  EXPECT_EQ(found, said.size());
}

TEST(HfOracle, AFolderComesOutAsItWentIn) {
  for (const std::string& family : families()) {
    SCOPED_TRACE(family);
    const Folder folder;
    const fs::path path = put_folder(folder, family);
    StepConfig c = config_of(path, 2, 2, false);
    const fs::path tag = reshard(CheckpointReader(path), c, 4, folder.path() / "tags");
    const auto files = export_hf(CheckpointReader(tag), c, folder.path() / "out", {.like = path, .file_bytes = 20'000});
    EXPECT_GT(files.size(), 5U);
    EXPECT_TRUE(fs::exists(folder.path() / "out" / "tokenizer.json"));
    expect_weights(folder.path() / "out", family);
    EXPECT_EQ(hf_weights(folder.path() / "out").tensors.size(), golden()[family]["tensors"].size());
    // Exports the folder that was written once more, into one file.
    export_hf(CheckpointReader(folder.path() / "out"), c, folder.path() / "one");
    EXPECT_TRUE(fs::exists(folder.path() / "one" / "model.safetensors"));
    expect_weights(folder.path() / "one", family);
    EXPECT_NE(why([&] { export_hf(CheckpointReader(path), c, folder.path() / "one"); }).find("is there already"),
              std::string::npos);
  }
}

TEST(HfFolder, WhatIsWrongIsNamed) {
  const Folder folder;
  const fs::path path = put_folder(folder, "llama");
  const auto complaint = [&] {
    return why([&] {
      const CheckpointReader source(path);
      const TensorSlice whole = source.whole("model.norm.weight");
      std::vector<float> values(64);
      source.read("model.norm.weight", {32, 1, 0, 32, 0, 1}, values.data());
      source.read("lm_head.weight", {67, 32, 0, 1, 0, 32}, values.data());
      EXPECT_EQ(whole.rows, 32U);
    });
  };
  EXPECT_EQ(complaint(), "");
  const auto expect = [&](const std::string& words) {
    EXPECT_NE(complaint().find(words), std::string::npos) << complaint();
  };
  const fs::path second = path / "model-1.safetensors";
  const std::uintmax_t bytes = fs::file_size(second);
  fs::resize_file(second, bytes - 100);
  expect("model-1.safetensors: tensor ");
  expect("the file was cut short");
  fs::resize_file(second, 3);
  expect("model-1.safetensors: expected a safetensors file");
  fs::remove(second);
  expect("model-1.safetensors is missing: model.safetensors.index.json names it");
  put_folder(folder, "llama");
  std::ifstream in(path / index_name);
  json index = json::parse(in);
  index["weight_map"]["model.norm.weight"] = "../model-1.safetensors";
  folder.put(std::string("llama/") + index_name, index.dump());
  expect("expected the name of a file of the folder");
  folder.put(std::string("llama/") + index_name, R"({"weight_map": {"more": "model-0.safetensors"}})");
  expect("model-0.safetensors has no tensor more, which the index says it has");
  folder.put(std::string("llama/") + index_name, "[]");
  expect("expected an index: an object with a weight_map");
  fs::remove(path / index_name);
  expect("llama: expected model.safetensors or model.safetensors.index.json");
  folder.put("llama/pytorch_model.bin", "");
  expect("runs code when it is read: expected safetensors");
  const std::vector<std::int64_t> whole(32, 1);
  const std::vector<float> narrow(67 * 16, 1.0F);
  write_shard(path / "model.safetensors", {{"model.norm.weight", DType::i64, {32, 1, 0, 32, 0, 1}, whole.data()}});
  expect("model.norm.weight is of i64: expected f32, bf16, f16 or f64");
  write_shard(path / "model.safetensors", {{"model.norm.weight", DType::f32, {32, 1, 0, 32, 0, 1}, narrow.data()},
                                           {"lm_head.weight", DType::f32, {67, 16, 0, 67, 0, 16}, narrow.data()}});
  expect("lm_head.weight is 67 x 16 in the checkpoint and 67 x 32 in the model");
  folder.put("llama/model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 26\n");
  expect("model.safetensors: a pointer of Git LFS: expected the file itself");
  folder.put("llama/config.json", "{}");
  expect("config.json: model_type is '': expected llama");
}

}  // namespace
}  // namespace trellis::train
