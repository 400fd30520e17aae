// Configuration files: ${...} is resolved as by OmegaConf, all mistakes are reported together, and values that refer to
// a key get its value from the command line.
#include "tools/train/config_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/folder.h"
#include "tests/why.h"
#include "tools/train/config_interpolation.h"

namespace trellis::tools {
namespace {

using train::KeyValue;

KeyValue one(const std::string& key, const std::string& word) { return {.key = key, .words = {word}}; }

Values some() {
  Values v;
  for (const KeyValue& each :
       {one("a.x", "3"), one("a.y", "4"), one("a.b.z", "${..x}"), one("top", "7"), one("word", "deep"),
        one("a.deep", "found"), one("loop", "${pool}"), one("pool", "${loop}"), one("self.twice", "${.twice}${.twice}"),
        KeyValue{.key = "list", .words = {"1", "${a.x}"}, .list = true},
        KeyValue{.key = "none", .words = {}, .null = true}})
    v[each.key] = each;
  return v;
}

std::string resolved(const std::string& word, const std::string& at = "a.q") {
  const KeyValue v = interpolated(one(at, word), some());
  EXPECT_EQ(v.key, at);
  return v.words.at(0);
}

TEST(Interpolation, FollowsOmegaConfsRules) {
  EXPECT_EQ(resolved("plain"), "plain");
  EXPECT_EQ(resolved("${a.x}"), "3");
  EXPECT_EQ(resolved("${.y}"), "4") << "of the same section";
  EXPECT_EQ(resolved("${.b.z}"), "3") << "through another one, of the section above it";
  EXPECT_EQ(resolved("${..top}"), "7");
  EXPECT_EQ(resolved("${.top}", "q"), "7");
  EXPECT_EQ(resolved("run-${a.x}/${top}-end"), "run-3/7-end");
  EXPECT_EQ(resolved("${a.${word}}"), "found");
  EXPECT_EQ(resolved("\\${a.x}"), "${a.x}");
  EXPECT_EQ(resolved("${multiply:${a.x}, ${.y}}"), "12");
  EXPECT_EQ(resolved("${multiply:${multiply:2,3},0.5}"), "3");
  setenv("TRELLIS_TEST_OF_INTERPOLATION", "from outside", 1);
  EXPECT_EQ(resolved("${oc.env:TRELLIS_TEST_OF_INTERPOLATION}"), "from outside");
  unsetenv("TRELLIS_TEST_OF_INTERPOLATION");
  EXPECT_EQ(resolved("${oc.env:TRELLIS_TEST_OF_INTERPOLATION, 'a, b'}"), "a, b");
  EXPECT_EQ(resolved("${oc.env:TRELLIS_TEST_OF_INTERPOLATION, ${a.x}}"), "3");
  EXPECT_TRUE(interpolated(one("a.q", "${none}"), some()).null);
  const KeyValue list = interpolated(one("a.q", "${list}"), some());
  EXPECT_TRUE(list.list);
  EXPECT_EQ(list.words, (std::vector<std::string>{"1", "3"}));
}

TEST(Interpolation, NamesWhatCannotBeResolved) {
  const auto refused = [](const std::string& word) { return why([&] { interpolated(one("a.q", word), some()); }); };
  EXPECT_EQ(refused("${a.none}"), "a.q: ${a.none}: there is no 'a.none'");
  EXPECT_NE(refused("${loop}").find("refers to itself"), std::string::npos) << refused("${loop}");
  EXPECT_NE(refused("x${self.twice}"), "");
  EXPECT_NE(refused("${a.x").find("expected a } for each ${"), std::string::npos);
  EXPECT_NE(refused("x ${list}").find("expected one value"), std::string::npos);
  EXPECT_NE(refused("${divide:1,2}").find("expected multiply with numbers, or oc.env"), std::string::npos);
  EXPECT_NE(refused("${multiply:1,two}").find("'two' is no number"), std::string::npos);
  EXPECT_NE(refused("${oc.env:TRELLIS_TEST_OF_INTERPOLATION}").find("the environment has no"), std::string::npos);
}

TEST(ConfigFile, TheCommandLineChangesWhatOthersReferTo) {
  const std::string text =
      "trainer: {max_steps: 500}\n"
      "model:\n  optim: {sched: {max_steps: '${trainer.max_steps}'}}\n  encoder_seq_length: 64\n"
      "  max_position_embeddings: ${.encoder_seq_length}\n"
      "data:\n  seq_length: ${model.encoder_seq_length}\n";
  const train::JobConfig job =
      parse_config("x.yaml", text, {"trainer.max_steps=9", "model.encoder_seq_length=128"}).job;
  EXPECT_EQ(job.trainer.max_steps, 9);
  EXPECT_EQ(job.step.schedule.max_steps, 9);
  EXPECT_EQ(job.step.model.max_position_embeddings, 128U);
  EXPECT_EQ(job.step.seq_length, 128U);
}

TEST(ConfigFile, AllMistakesAreToldTogether) {
  const std::string text =
      "trainer:\n  max_steps: -1\n  max_stepz: 4\n"
      "data: 3\n"
      "model:\n  vocab_size: ${nowhere}\n  fusions: {ring_attention: 7}\n";
  const std::string said = why([&] { parse_config("x.yaml", text, {"modl.x=1", "seed"}); });
  for (const char* words :
       {"7 mistakes: ", "x.yaml, line 2: trainer.max_steps is '-1': expected a whole number, 1 to",
        "x.yaml, line 3: no key 'trainer.max_stepz'; did you mean 'trainer.max_steps'?",
        "x.yaml, line 4: data is a section", "x.yaml, line 6: model.vocab_size: ${nowhere}: there is no 'nowhere'",
        "x.yaml, line 7: model.fusions.ring_attention is '7': expected true or false",
        "--set modl.x=1: no key 'modl.x'", "--set seed: expected KEY=VALUE"})
    EXPECT_NE(said.find(words), said.npos) << words << "\n" << said;
  EXPECT_EQ(why([&] { parse_config("x.yaml", "seed: many\n", {}); }),
            "x.yaml, line 1: seed is 'many': expected a whole number, 0 or more");
}

// A file that is no text is refused, whatever its first bytes are.
TEST(ConfigFile, IsAText) {
  const std::string program("\x7f\x45LF\0", 5);
  EXPECT_EQ(why([&] { parse_config("a.out", program, {}, {}); }), "a.out: not a text file, as byte 5 is zero");
}

// The name of an update rule also sets epsilon, unless one is given, in whichever order the two come.
TEST(ConfigFile, TheNumbersOfAnUpdateRuleAreThoseThatAreGiven) {
  const auto epsilon = [](const std::string& optim, const std::vector<std::string>& changes = {}) {
    return parse_config("x.yaml", "model: {optim: " + optim + "}\n", changes).job.step.optimizer.epsilon;
  };
  EXPECT_EQ(epsilon("{name: lamb}"), 1e-6);
  EXPECT_EQ(epsilon("{name: lamb, eps: 1.0e-3}"), 1e-3);
  EXPECT_EQ(epsilon("{eps: 1.0e-3, name: lamb}"), 1e-3);
  EXPECT_EQ(epsilon("{eps: 1.0e-3, name: adamw_fp32OptState}"), 1e-3);
  EXPECT_EQ(epsilon("{eps: 1.0e-3}", {"model.optim.name=lamb"}), 1e-3);
  EXPECT_EQ(epsilon("{}", {"model.optim.eps=1e-3", "model.optim.name=lamb"}), 1e-3);
}

TEST(ConfigFile, WeightsOfDataStayWherePathsHaveNone) {
  for (const char* data :
       {"{train_weights: [0.3, 0.7], data_prefix: [a, b]}", "{data_prefix: [a, b], train_weights: [0.3, 0.7]}"}) {
    const train::JobConfig job = parse_config("x.yaml", fmt::format("data: {}\n", data), {}).job;
    EXPECT_EQ(job.data.weights, (std::vector<double>{0.3, 0.7})) << data;
  }
}

TEST(ConfigFile, OtherKeysComeBeforeHuggingFacesFile) {
  const Folder folder;
  const auto path = folder.put("config.json", R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 12})");
  const std::string text = "model:\n  num_layers: 4\n  model_config: " + path.string() + "\n";
  const train::JobConfig job = parse_config("x.yaml", text, {}).job;
  EXPECT_EQ(job.step.model.hidden_size, 64U);
  EXPECT_EQ(job.step.model.num_layers, 4U);
}

}  // namespace
}  // namespace trellis::tools
