// Keys of configurations: what each takes and refuses, whoever sets it, and what a resumed run may change.
#include "train/config/apply_config_keys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/folder.h"
#include "tests/why.h"
#include "train/checkpoint/training_provenance.h"
#include "train/config/canonical.h"
#include "train/config/hf/hf_config.h"

namespace trellis::train {
namespace {

std::string refusal(const KeyValue& v) {
  JobConfig c;
  return why([&] { apply(c, v); });
}

TEST(Keys, SayWhatTheyExpect) {
  EXPECT_EQ(refusal({"trainer.max_steps", {"many"}}),
            "trainer.max_steps is 'many': expected a whole number, 1 to 1000000000000000");
  EXPECT_EQ(refusal({"distributed_strategy.zero1", {"perhaps"}}),
            "distributed_strategy.zero1 is 'perhaps': expected true or false");
  EXPECT_NE(refusal({"precision.type", {"manual"}}).find("expected fp32, bf16SR"), std::string::npos);
  JobConfig c;
  EXPECT_NE(apply(c, {"model_alignment_strategy.dpo", {}}).find("and not trained"), std::string::npos);
  EXPECT_EQ(c.trainer.untrained, "model_alignment_strategy.dpo: losses over pairs of responses are not built");
  for (const char* spelling : {"mixed_precisionSR", "mixed_precision_SR"}) {
    c.step.precision = Precision::fp32;
    apply(c, {"precision.type", {spelling}});
    EXPECT_EQ(c.step.precision, Precision::mixed_sr);
  }
  apply(c, {"model.pipeline_cuts", {"model.layers.3", "7"}, true});
  EXPECT_EQ(c.step.strategy.cuts, (std::vector<std::size_t>{3, 7}));
  apply(c, {"exp_manager.checkpoint_callback_params.save_last", {"true"}});
  EXPECT_TRUE(c.experiment.save_last);
  EXPECT_NE(apply(c, {"compiler_flags", {"-O1"}}), "");
  EXPECT_TRUE(is_section("model.optim"));
  EXPECT_FALSE(is_section("model.opti"));
}

struct Refused {
  const char *key, *value, *expected;
};

TEST(Keys, RefuseWhatCannotBeMeant) {
  const Refused all[] = {{"trainer.max_steps", "-5", "a whole number, 1 to"},
                         {"trainer.max_steps", "0", "a whole number, 1 to"},
                         {"trainer.max_steps", "2.5", "a whole number, 1 to"},
                         {"trainer.log_every_n_steps", "0", "a whole number, 1 to"},
                         {"trainer.val_check_interval", "-1", "a whole number, 0 to"},
                         {"trainer.limit_val_batches", "1.5", "a number, 0 to 1"},
                         {"trainer.limit_val_batches", "-2", "a whole number, -1 or more"},
                         {"trainer.threads", "100000", "a whole number, -1 to 1024"},
                         {"trainer.devices", "-1", "a whole number, 0 to 1024"},
                         {"trainer.num_nodes", "99999999999", "a whole number, 0 to 65536"},
                         {"trainer.gradient_clip_val", "-1", "a number, 0 or more"},
                         {"trainer.gradient_clip_val", "nan", "a number, 0 or more"},
                         {"trainer.gradient_clip_val", "inf", "a number, 0 or more"},
                         {"trainer.peak_tflops", "-1", "a number, 0 or more"},
                         {"name", "../outside", "the name of a folder, without '/'"},
                         {"name", "..", "the name of a folder"},
                         {"name", "", "the name of a folder"},
                         {"exp_manager.checkpoint_callback_params.save_top_k", "-2", "a whole number, -1 to"},
                         {"exp_manager.checkpoint_callback_params.every_n_train_steps", "-1", "a whole number, 0 to"},
                         {"data.prefetch", "1000000", "a whole number, 0 to 1024"},
                         {"data.token_bytes", "3", "a whole number, 0 or 2 or 4"},
                         {"data.seq_length", "0", "a whole number, 1 to"},
                         {"data.micro_batch_size", "0", "a whole number, 1 to"},
                         {"bucket_size_collectives", "1e11", "a whole number, 0 to 1048576"},
                         {"model.num_layers", "1000000", "a whole number, 1 to 4096"},
                         {"model.vocab_size", "1", "a whole number, 2 to"},
                         {"model.initializer_range", "-1", "a number, 0 or more"},
                         {"model.rope_theta", "0", "a number, more than 0"},
                         {"model.rotary_percentage", "1.5", "a number, more than 0, to 1"},
                         {"model.hidden_dropout", "1", "a number, 0 to below 1"},
                         {"model.optim.lr", "-1", "a number, 0 or more"},
                         {"model.optim.lr", "inf", "a number, 0 or more"},
                         {"model.optim.eps", "0", "a number, more than 0, to 1"},
                         {"model.optim.sched.warmup_steps", "-3", "a whole number, 0 to"},
                         {"model.optim.norm_type", "0", "a number, more than 0, infinity too"},
                         {"distributed_strategy.tensor_model_parallel_size", "0", "a whole number, 1 to 1048576"},
                         {"model_alignment_strategy.peft.lora_alpha", "-1", "a number, more than 0"}};
  for (const auto& [key, value, expected] : all) {
    const std::string said = refusal({key, {value}});
    EXPECT_TRUE(said.starts_with(std::string(key) + " is '" + value + "': expected ")) << said;
    EXPECT_NE(said.find(expected), said.npos) << said;
  }
  EXPECT_NE(refusal({"model.optim.betas", {"0.9", "1"}, true}).find("a number, 0 to below 1"), std::string::npos);
}

TEST(Keys, ReadNumbersAsPeopleWriteThem) {
  JobConfig c;
  apply(c, {"trainer.max_steps", {"1e4"}});
  EXPECT_EQ(c.trainer.max_steps, 10'000);
  apply(c, {"model.num_layers", {"8.0"}});
  EXPECT_EQ(c.step.model.num_layers, 8U);
  apply(c, {"model.optim.norm_type", {".inf"}});
  EXPECT_TRUE(std::isinf(c.step.optimizer.norm_type));
  apply(c, {"trainer.limit_val_batches", {"0.25"}});
  EXPECT_EQ(c.trainer.limit_val_batches, -1);
  EXPECT_EQ(c.trainer.limit_val_share, 0.25);
  apply(c, {"trainer.limit_val_batches", {"0.0"}});
  EXPECT_EQ(c.trainer.limit_val_batches, 0);
}

// The same checks hold when a program sets fields without a file.
TEST(Keys, HoldWhatAProgramSets) {
  check_values({});
  JobConfig c;
  c.data.prefetch = 1'000'000;
  EXPECT_EQ(why([&] { check_values(c); }), "data.prefetch is 1000000: expected a whole number, 0 to 1024");
  StepConfig step;
  step.model.initializer_range = std::nan("");
  EXPECT_EQ(why([&] { derive(step, 1); }), "model.initializer_range is nan: expected a number, 0 or more");
  step = {};
  step.recompute_layers = {0, 99};
  EXPECT_EQ(why([&] { derive(step, 1); }), "model.activations_checkpoint_layers has 99: expected layers 0 to 1");
  step = {};
  step.schedule = {.name = "CosineAnnealing", .min_lr = 5};
  EXPECT_EQ(why([&] { derive(step, 1); }), "model.optim.sched.min_lr is 5: expected at most model.optim.lr, 0.001");
  step.schedule.name = "constant";  // it does not use min_lr
  EXPECT_EQ(why([&] { derive(step, 1); }), "");
}

TEST(Keys, MegatronsWordsNameTheArchitecture) {
  const auto described = [](const std::vector<std::pair<std::string, std::string>>& words, JobConfig c = {}) {
    for (const auto& [key, value] : words) apply(c, {"model." + key, {value}});
    const std::string refused = why([&] { complete(c); });
    return refused.empty() ? c.step.model.architecture : refused;
  };
  EXPECT_EQ(described({}), "llama");
  EXPECT_EQ(described({{"activation", "gelu"}, {"position_embedding_type", "learned_absolute"}}), "gpt3");
  EXPECT_EQ(described({{"activation", "gelu"}, {"position_embedding_type", "rope"}, {"has_bias", "True"}}), "gpt_neox");
  EXPECT_EQ(described({{"activation", "swiglu"}, {"normalization", "rmsnorm"}, {"has_bias", "False"}}), "llama");
  EXPECT_TRUE(
      described({{"activation", "swiglu"}, {"has_bias", "True"}})
          .starts_with("no architecture has model.activation swiglu, model.has_bias true: expected llama (swiglu, "
                       "rmsnorm, rope, no biases) or "));
  EXPECT_TRUE(described({{"architecture", "gpt3"}, {"normalization", "rmsnorm"}})
                  .starts_with("no architecture has model.architecture gpt3, model.normalization rmsnorm: expected"));
}

TEST(Keys, HuggingFacesConfigSaysWhatTheModelIs) {
  const Folder folder;
  const auto read = [&](const std::string& more, JobConfig* to = nullptr) {
    const auto path = folder.put("config.json", R"({"model_type": "llama", "hidden_act": "silu", "hidden_size": 96,
        "num_attention_heads": 6, "num_key_value_heads": 2, "num_hidden_layers": 3, "rms_norm_eps": 1e-06,
        "rope_theta": 500000.0, "torch_dtype": "bfloat16", "tie_word_embeddings": true, "vocab_size": 1000)" +
                                                    more + "}");
    JobConfig c;
    return why([&] { apply(to == nullptr ? c : *to, {"model.model_config", {path.string()}}); });
  };
  JobConfig c;
  c.step.model.architecture = "gpt3";
  EXPECT_EQ(read("", &c), "");
  EXPECT_EQ(c.step.model.architecture, "llama");
  EXPECT_EQ(c.step.model.num_layers, 3U);
  EXPECT_EQ(c.step.model.kv_heads(), 2U);
  EXPECT_EQ(c.step.model.norm_epsilon, 1e-6);
  EXPECT_EQ(c.step.model.rope_theta, 5e5);
  EXPECT_TRUE(c.step.model.tie_word_embeddings);
  EXPECT_EQ(read(R"(, "head_dim": 16, "rope_scaling": null, "attention_bias": false)"), "");
  const std::pair<const char*, const char*> refused[] = {
      {R"(, "rope_scaling": {"type": "mrope", "factor": 8.0})",
       "model.rope_scaling.rope_type is 'mrope': expected default, linear, dynamic, llama3, yarn or longrope"},
      {R"(, "rope_scaling": {"type": "linear", "factor": 0.5})",
       "model.rope_scaling.factor is '0.5': expected a number, 1 or more"},
      {R"(, "rope_scaling": 8)", "rope_scaling is 8: expected fields"},
      {R"(, "rope_parameters": {"partial_rotary_factor": 0.5})", "partial_rotary_factor is 0.5: expected 1"},
      {R"(, "quantization_config": {"bits": 4})",
       R"(quantization_config is {"bits":4}: expected none; weights are read)"},
      {R"(, "mlp_bias": true)", "mlp_bias is true: expected false"},
      {R"(, "intermediate_size": -4)", "model.intermediate_size is '-4': expected a whole number, 0 to"},
      {R"(, "attention_dropout": 1)", "model.attention_dropout is '1': expected a number, 0 to below 1"},
      {", ", "config.json: "}};
  for (const auto& [more, words] : refused) EXPECT_NE(read(more).find(words), std::string::npos) << read(more);
  folder.put("config.json", R"({"model_type": "mamba"})");
  EXPECT_NE(why([&] {
              apply(c, {"model.model_config", {(folder.path() / "config.json").string()}});
            }).find("model_type is 'mamba': expected llama, mistral, qwen2"),
            std::string::npos);
  EXPECT_EQ(refusal({"model.model_config", {"/nonexistent/config.json"}}), "cannot read /nonexistent/config.json");
}

TEST(Keys, HuggingFacesFamiliesAreReadByTheirOwnNames) {
  const auto model_of = [](const std::string& fields) {
    JobConfig c;
    EXPECT_EQ(why([&] { apply_hf_text(c, "config.json", "{" + fields + "}"); }), "");
    return c.step.model;
  };
  const ModelConfig llama31 = model_of(R"("model_type": "llama", "head_dim": 128, "hidden_size": 2048,
      "num_attention_heads": 32, "rope_theta": 500000.0, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0,
      "low_freq_factor": 1.0, "original_max_position_embeddings": 4096, "rope_type": "llama3"})");
  EXPECT_EQ(llama31.head_size(), 128U);
  EXPECT_EQ(llama31.rope_scaling.type, "llama3");
  EXPECT_EQ(llama31.rope_scaling.factor, 32);
  EXPECT_EQ(llama31.rope_scaling.original_positions, 4096U);
  EXPECT_EQ(model_of(R"("model_type": "mistral", "sliding_window": 4096)").sliding_window, 4096U);
  EXPECT_EQ(model_of(R"("model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": false)").sliding_window,
            0U);
  EXPECT_TRUE(model_of(R"("model_type": "qwen2")").qkv_bias);
  EXPECT_TRUE(model_of(R"("model_type": "qwen3")").qk_norm);
  EXPECT_TRUE(model_of(R"("model_type": "qwen3_moe")").qk_norm);
  const ModelConfig gpt2 =
      model_of(R"("model_type": "gpt2", "n_embd": 48, "n_layer": 3, "n_head": 6, "n_inner": null)");
  EXPECT_EQ(gpt2.architecture, "gpt3");
  EXPECT_EQ(gpt2.inner(), 192U);
  EXPECT_TRUE(gpt2.tie_word_embeddings);
  EXPECT_EQ(model_of(R"("model_type": "gpt_neox")").rotary_percentage, 0.25);
  EXPECT_FALSE(model_of(R"("model_type": "gpt_neox", "use_parallel_residual": false)").parallel_residual);
  EXPECT_EQ(model_of(R"("model_type": "bert")").norm_epsilon, 1e-12);
  const ModelConfig phi3 = model_of(R"("model_type": "phi3", "hidden_size": 64, "num_attention_heads": 4,
      "max_position_embeddings": 64, "original_max_position_embeddings": 16, "partial_rotary_factor": 0.75,
      "sliding_window": 32, "rope_scaling": {"type": "su", "short_factor": [1, 1.5, 2, 2, 2, 3],
      "long_factor": [1, 2, 4, 8, 16, 32.5]})");
  EXPECT_EQ(phi3.architecture, "phi3");
  EXPECT_EQ(phi3.rope_scaling.type, "longrope");
  EXPECT_EQ(phi3.rope_scaling.factor, 4);
  EXPECT_EQ(phi3.rope_scaling.original_positions, 16U);
  EXPECT_EQ(phi3.rope_scaling.long_factors, (std::vector<double>{1, 2, 4, 8, 16, 32.5}));
  EXPECT_EQ(phi3.turned(), 12U);
  EXPECT_EQ(phi3.sliding_window, 32U);
}

TEST(Keys, ExpertsOfHuggingFaceAreRead) {
  const auto experts_of = [](const std::string& fields) {
    JobConfig job;
    apply_hf_text(job, "config.json", R"({"hidden_size": 64, "num_attention_heads": 4, )" + fields + "}");
    return job.step.experts;
  };
  const ExpertsConfig mixtral = experts_of(R"("model_type": "mixtral", "num_local_experts": 8)");
  EXPECT_EQ(mixtral.experts, 8U);
  EXPECT_TRUE(mixtral.normalize);
  for (const char* number : {"num_experts", "num_local_experts"}) {  // the key before transformers 5, and since
    const ExpertsConfig qwen = experts_of(fmt::format(
        R"("model_type": "qwen3_moe", "{}": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768)", number));
    EXPECT_EQ(qwen.experts, 128U);
    EXPECT_EQ(qwen.top_k, 8U);
    EXPECT_EQ(qwen.inner, 768U);
    EXPECT_FALSE(qwen.normalize) << "what Hugging Face takes where norm_topk_prob is not said";
  }
  EXPECT_EQ(why([&] { experts_of(R"("model_type": "qwen3_moe", "mlp_only_layers": [0])"); }),
            "config.json: mlp_only_layers is [0]: expected []; all layers have experts");
}

TEST(Keys, AConfigurationOfHuggingFaceIsWrittenAsItIsRead) {
  const auto again = [](const ModelConfig& m, const std::string& base = "") {
    JobConfig c;
    apply_hf_text(c, "config.json", hf_config_text({.model = m}, base, "bfloat16"));
    return c.step;
  };
  ModelConfig m{.vocab_size = 101, .hidden_size = 48, .num_layers = 3, .num_attention_heads = 6};
  for (const char* architecture : {"llama", "gpt_neox", "gpt3", "bert"}) {
    m.architecture = architecture;
    m.num_key_value_heads = m.architecture == "llama" ? 2 : 0;
    m.intermediate_size = 96, m.head_dim = m.architecture == "llama" ? 16 : 0;
    m.rotary_percentage = m.architecture == "gpt_neox" ? 0.5 : 1;
    EXPECT_EQ(canonical(again(m), 1), canonical({.model = m}, 1));
  }
  m.architecture = "llama", m.rotary_percentage = 1, m.num_key_value_heads = 6, m.head_dim = 8;
  m.rope_scaling = {"llama3", 8, 1, 4, 64}, m.sliding_window = 32;
  for (int kind = 0; kind < 3; ++kind) {
    m.qkv_bias = kind == 1, m.qk_norm = kind == 2;
    EXPECT_EQ(canonical(again(m), 1), canonical({.model = m}, 1)) << kind;
  }
  const std::string base = R"({"model_type": "llama", "vocab_size": 101, "eos_token_id": 7, "torch_dtype": "float32"})";
  JobConfig c;
  apply_hf_text(c, "config.json", base);
  JobConfig adapted = c;
  adapted.step.lora.rank = 4;  // no field says so: adapters are merged into the weights
  EXPECT_EQ(hf_config_text(adapted.step, base, "bfloat16"), hf_config_text(c.step, base, "bfloat16"));
  for (std::size_t layers : {c.step.model.num_layers, std::size_t{5}}) {
    c.step.model.num_layers = layers;
    const std::string text = hf_config_text(c.step, base, "bfloat16");
    EXPECT_NE(text.find("\"eos_token_id\": 7"), std::string::npos) << text;
    EXPECT_NE(text.find("\"torch_dtype\": \"bfloat16\""), std::string::npos) << text;
    EXPECT_EQ(again(c.step.model, base).model.num_layers, layers);
  }
}

TEST(Keys, FusedProjectionsAndWeightedPathsAreReadAsUpstream) {
  JobConfig c;
  apply(c, {"model_alignment_strategy.peft.target_modules", {"qkv_proj", "o_proj"}, true});
  EXPECT_EQ(c.step.lora.targets, (std::vector<std::string>{"q_proj", "k_proj", "v_proj", "o_proj"}));
  apply(c, {"data.data_prefix", {"1.0", "/a/text_document"}, true});
  EXPECT_EQ(c.data.train_path, std::vector<std::string>{"/a/text_document"});
  EXPECT_EQ(c.data.weights, std::vector<double>{1});
  apply(c, {"data.data_prefix", {"0.3", "/a", "1e-1", "/b"}, true});
  EXPECT_EQ(c.data.train_path, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(c.data.weights, (std::vector<double>{0.3, 0.1}));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"0.5", "/a", "/b"}, {"/a", "0.5"}, {"0.5", "0.5"}})
    EXPECT_NE(refusal({"data.data_prefix", wrong, true}).find("expected a weight before each path, or before none"),
              std::string::npos);
}

ResumeDifferences changed(const std::function<void(JobConfig&)>& change, bool anew = false) {
  JobConfig was, now;
  change(now);
  return differences(origin_of(was, {}, ""), now, {}, anew);
}

using Words = std::vector<std::string>;

TEST(TrainingProvenance, ToldOrRefusedByWhatDependsOnIt) {
  EXPECT_EQ(changed([](JobConfig&) {}).refused, Words{});
  EXPECT_EQ(changed([](JobConfig&) {}).said, Words{});
  const auto theta = [](JobConfig& c) { c.step.model.rope_theta = 500; };
  for (bool anew : {false, true}) EXPECT_EQ(changed(theta, anew).refused, Words{"model.rope_theta is 500, was 10000"});
  const auto seed = [](JobConfig& c) { c.step.seed = 99; };
  EXPECT_EQ(changed(seed).refused, Words{"seed is 99, was 1234"});
  EXPECT_EQ(changed(seed, true).refused, Words{});
  const auto old = [](JobConfig& c) { c.step.optimizer.decay_last = true; };
  EXPECT_EQ(changed(old).refused, Words{"model.optim.name is adamw_fp32OptState, was adamw"});
  const auto layout = [](JobConfig& c) { c.step.strategy.tensor = 2, c.trainer.max_steps = 7; };
  EXPECT_EQ(changed(layout).refused, Words{});
  EXPECT_EQ(changed(layout).said,
            (Words{"trainer.max_steps is 7, was 100", "distributed_strategy.tensor_model_parallel_size is 2, was 1"}));
  EXPECT_EQ(changed([](JobConfig& c) { c.experiment.directory = "x", c.trainer.threads = 3; }).said, Words{});
}

TEST(TrainingProvenance, KnowsDataByItsContents) {
  const std::vector<DataFile> was{{"a", 100, 1}, {"b", 50, 2}};
  const auto with = [&](const std::vector<DataFile>& now, bool anew = false) {
    return differences(origin_of({}, was, ""), {}, now, anew);
  };
  EXPECT_EQ(with(was).refused, Words{});
  EXPECT_EQ(with({{"moved/a", 100, 1}, {"b", 50, 2}}).said,
            Words{"data.train_path has moved/a, was a: with the same contents"});
  EXPECT_EQ(with({{"a", 90, 3}, {"b", 50, 2}}).refused, Words{"data.train_path has a (90 bytes), was a (100 bytes)"});
  EXPECT_EQ(with({{"a", 100, 3}, {"b", 50, 2}}).refused,
            Words{"data.train_path: a (100 bytes) has other contents than it had"});
  EXPECT_EQ(with({{"a", 100, 1}}).refused, Words{"data.train_path has none, was b (50 bytes)"});
  EXPECT_EQ(with({{"b", 50, 2}, {"a", 100, 1}}).refused.size(), 2U) << "the order is that of the samples";
  EXPECT_EQ(with({}, true).refused, Words{});
}

// Old checkpoints lack settings that were added later.
TEST(TrainingProvenance, WhatACheckpointDoesNotSayIsNotCompared) {
  JobConfig now;
  now.step.seed = 5;
  TrainingProvenance was = origin_of({}, {}, "");
  was.settings.erase("seed");
  EXPECT_EQ(differences(was, now, {}, false).refused, Words{});
}

}  // namespace
}  // namespace trellis::train
