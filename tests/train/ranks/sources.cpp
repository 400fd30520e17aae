// A program's own parts in the trainer, and every form of data: the same steps after a stop, and on any layout.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/folder.h"
#include "tests/train/megatron.h"
#include "tests/train/ranks/runs.h"
#include "train/config/optimizer_config.h"
#include "train/update/rule.h"

namespace trellis::train {
namespace {

namespace fs = std::filesystem;

// Writes documents of 5 to 40 tokens, of which the first third is not to be predicted.
void put_documents(const Folder& folder, const std::string& name, int documents, int seed) {
  std::string bin, mask, lengths, pointers, ends = bytes_of<std::int64_t>({0});
  std::int64_t at = 0;
  for (int d = 0; d < documents; ++d) {
    const int length = 5 + (d * 7 + seed) % 36;
    lengths += bytes_of<std::int32_t>({length}), pointers += bytes_of<std::int64_t>({at});
    for (int i = 0; i < length; ++i, at += 2) {
      bin += bytes_of<std::uint16_t>({static_cast<std::uint16_t>((d + i * i * seed) % 60)});
      mask += static_cast<char>(i >= length / 3);
    }
    ends += bytes_of<std::int64_t>({d + 1});
  }
  const auto count = static_cast<std::uint64_t>(documents);
  folder.put(name + ".bin", bin);
  folder.put(name + ".mask", mask);
  folder.put(name + ".idx", std::string("MMIDIDX\0\0", 9) + bytes_of<std::uint64_t>({1}) + bytes_of<std::uint8_t>({8}) +
                                bytes_of<std::uint64_t>({count, count + 1}) + lengths + pointers + ends);
}

JobConfig of_documents(const Folder& folder) {
  JobConfig c = run_in(folder);
  put_documents(folder, "a", 40, 1), put_documents(folder, "b", 60, 2);
  c.data.train_path = {folder.path() / "a", folder.path() / "b.bin"};
  c.step.global_batch_size = 4;
  return c;
}

TEST(Sources, EveryFormGoesOnWhereItWasOnAnyLayout) {
  const Folder folder;
  const auto blended = [](JobConfig& c) { c.data.weights = {0.25, 0.75}; };
  const auto cut = [](JobConfig& c) { c.step.cut_attention = true, c.data.mask_ends = true; };
  const auto whole = [](JobConfig& c) { c.data.packing = false; };
  const auto all = [&](JobConfig& c) { blended(c), cut(c), whole(c); };
  std::vector<std::vector<double>> first;
  for (const std::function<void(JobConfig&)>& form :
       {std::function<void(JobConfig&)>([](JobConfig&) {}), std::function<void(JobConfig&)>(blended),
        std::function<void(JobConfig&)>(cut), std::function<void(JobConfig&)>(whole),
        std::function<void(JobConfig&)>(all)}) {
    JobConfig c = of_documents(folder);
    form(c);
    fs::remove_all(c.experiment.directory);
    const Trial one = train_in(c);
    ASSERT_EQ(one.fault, "");
    for (const auto& other : first) EXPECT_NE(one.losses, other) << "the form makes a difference";
    first.push_back(one.losses);
    c.experiment.resume = true;
    fs::remove_all(c.experiment.directory);
    const Trial begun = train_in(c, 1, 5);
    std::vector<double> losses = begun.losses;
    // The rest runs on 8 ranks: 2 pipeline stages x 2 data-parallel x 2 tensor-parallel.
    c.step.strategy.tensor = 2, c.step.strategy.pipeline = 2, c.step.strategy.sequence_parallel = true;
    const Trial rest = train_in(c, 8);
    ASSERT_EQ(rest.fault, "");
    losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
    ASSERT_EQ(losses.size(), one.losses.size());
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(losses[i], one.losses[i]);
    for (std::size_t i = 5; i < losses.size(); ++i) EXPECT_NEAR(losses[i], one.losses[i], 1e-5 * one.losses[i]);
  }
}

TEST(Sources, ASingleDocumentIsOne) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.data.packing = false, c.experiment.directory = "";
  put_documents(folder, "single", 1, 1);
  const fs::path record = folder.put("one.jsonl", R"({"prompt": "1 + 2 = ", "response": "3"})");
  for (const fs::path& path : {folder.path() / "single", record}) {
    c.data.train_path = {path};
    EXPECT_EQ(train_in(c).fault, "") << path;
  }
}

TEST(Sources, WhatDoesNotFitIsRefused) {
  const Folder folder;
  const auto fault = [&](const std::function<void(JobConfig&)>& change) {
    JobConfig c = of_documents(folder);
    c.experiment.directory = "";
    change(c);
    return train_in(c).fault;
  };
  EXPECT_NE(fault([](JobConfig& c) { c.data.weights = {1}; }).find("data.train_weights has 1 entries: expected 2"),
            std::string::npos);
  EXPECT_NE(fault([](JobConfig& c) { c.data.weights = {1, -1}; }).find("weight -1 of a data set"), std::string::npos);
  EXPECT_NE(fault([&](JobConfig& c) {
              c.data.packing = false, c.data.train_path = {folder.path() / "text.txt"};
            }).find("data.packing is false: expected documents in"),
            std::string::npos);
  EXPECT_NE(fault([](JobConfig& c) {
              c.step.schedule.name = "linear";
            }).find("model.optim.sched.name is 'linear': expected one of CosineAnnealing, LinearAnnealingWithWarmUp"),
            std::string::npos);
}

// A source of data in which a token is mostly a function of the one before.
class Rows : public DataSource {
 public:
  explicit Rows(std::int32_t first) : first_(first) {}
  std::uint64_t samples() const override { return 20; }
  void read(std::uint64_t number, const TokenSample& out) const override {
    std::int32_t token = first_ + static_cast<std::int32_t>(number % 50);
    for (int i = 0; i < 16; ++i) {
      out.tokens[i] = token;
      out.labels[i] = token = (token * 3 + 1) % 64;
    }
  }

 private:
  std::int32_t first_;
};

class Notes : public Callback {
 public:
  void on_train_start(TrainState& s) override { note("start", s); }
  void on_train_batch_start(TrainState& s, const Batch& b) override {
    note("batch " + std::to_string(b.tokens[0][0]), s);
  }
  void on_train_batch_end(TrainState& s, const StepRecord& r) override {
    rates.push_back(r.learning_rate);
    note("end", s);
    s.stop = r.step == stop_after;
  }
  void on_validation_end(TrainState& s, double) override { note("validated", s); }
  void on_save_checkpoint(TrainState& s) override { note("saved", s); }
  void on_train_end(TrainState& s, const TrainingResult&) override { note("over", s); }

  std::vector<std::string> seen;
  std::vector<double> rates;
  std::int64_t stop_after = 0;

 private:
  void note(const std::string& what, const TrainState& s) { seen.push_back(what + " " + std::to_string(s.step)); }
};

TEST(Sources, AProgramsOwnPartsAreAskedInTurn) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.data.train_path.clear();
  c.trainer.val_check_interval = 2;
  std::vector<std::vector<std::string>> seen(2);
  expect_on_threads(2, [&](ccl::Communicator& world) {
    const auto notes = std::make_shared<Notes>();
    notes->stop_after = world.rank() == 1 ? 3 : 0;
    Trainer trainer(c, world,
                    {.callbacks = {notes, std::make_shared<Callback>()},
                     .train_data = std::make_shared<Rows>(0),
                     .val_data = std::make_shared<Rows>(10),
                     .learning_rate = [](std::int64_t step) { return 1e-3 * static_cast<double>(step); }});
    const TrainingResult result = trainer.fit();
    EXPECT_TRUE(result.stopped);
    EXPECT_EQ(notes->rates, (std::vector<double>{1e-3, 2e-3, 3e-3}));
    seen[static_cast<std::size_t>(world.rank())] = notes->seen;
  });
  const auto expected = [](int first) {
    const auto batch = [&](int step) {
      return "batch " + std::to_string(first + 2 * step) + " " + std::to_string(step);
    };
    return std::vector<std::string>{"start 0", batch(0), "end 1", batch(1),      "end 2",   "validated 2",
                                    "saved 2", batch(2), "end 3", "validated 3", "saved 3", "over 3"};
  };
  EXPECT_EQ(seen[0], expected(0));
  EXPECT_EQ(seen[1], expected(1)) << "each data-parallel rank has its own samples";
}

TEST(Sources, TokensThatAreNoneAreRefused) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.experiment.directory = "";
  const std::string fault = on_threads(
      1, [&](ccl::Communicator& world) { Trainer(c, world, {.train_data = std::make_shared<Rows>(60)}).fit(); });
  EXPECT_NE(fault.find("the data source's tokens of step 3 have 64: expected 0 to 63"), std::string::npos) << fault;
}

// Plain gradient descent on f32, which equals sgd without momentum.
const RegisteredUpdateRule plain(element_rule(
    "plain",
    [](const ElementUpdate& u) {
      for (std::size_t i = 0; i < u.n; ++i)
        u.values[i] -= static_cast<float>(u.learning_rate * (u.gradient[i] + u.weight_decay * u.values[i]));
    },
    false));
const RegisteredRateSchedule halves(
    {.name = "halves", .rate = [](const OptimizerConfig& o, const ScheduleConfig&, std::int64_t step, std::int64_t) {
       return o.learning_rate / std::pow(2.0, static_cast<double>(step - 1));
     }});

TEST(Sources, OwnRulesAndSchedulesAreNamedLikeTheLibrarys) {
  const Folder folder;
  JobConfig c = run_in(folder);
  c.experiment.directory = "";
  c.step.optimizer.name = "sgd", c.step.optimizer.momentum = 0, c.step.optimizer.learning_rate = 0.1;
  const Trial library = train_in(c);
  c.step.optimizer.name = "plain";
  const Trial own = train_in(c);
  ASSERT_EQ(own.fault, "");
  ASSERT_EQ(own.losses.size(), library.losses.size());
  for (std::size_t i = 0; i < own.losses.size(); ++i) EXPECT_NEAR(own.losses[i], library.losses[i], 1e-5);
  for (const Precision p : {Precision::bf16_sr, Precision::bf16, Precision::mixed}) {
    c.step.precision = p, c.step.optimizer.name = "sgd";
    const double expected = train_in(c).losses.back();
    c.step.optimizer.name = "plain", c.step.strategy.zero1 = true;
    const Trial narrow = train_in(c, 2);
    ASSERT_EQ(narrow.fault, "");
    EXPECT_NEAR(narrow.losses.back(), expected, 0.02) << name(p);
    c.step.strategy.zero1 = false;
  }
  c.step.precision = Precision::fp32, c.step.schedule.name = "halves";
  EXPECT_DOUBLE_EQ(train_in(c).last.learning_rate, 0.1 / 512);
}

TEST(Sources, GroupsHaveRatesAndDecaysOfTheirOwn) {
  StepConfig c = small_llama();
  c.optimizer.group = [](const std::string& name) {
    if (name.find("embed") != name.npos) return ParameterGroup{.rate = 0};
    return ParameterGroup{.weight_decay = 0};
  };
  const Trained trained = train_threads(c, 1), before = train_threads(c, 1, {.steps = 0});
  ASSERT_EQ(trained.fault, "");
  for (const auto& [name, values] : trained.parameters)
    EXPECT_EQ(values == before.parameters.at(name), name.find("embed") != name.npos) << name;
  c.optimizer.group = [](const std::string&) { return ParameterGroup{.rate = -1}; };
  EXPECT_NE(train_threads(c, 1).fault.find("has rate -1 and weight decay"), std::string::npos);
}

}  // namespace
}  // namespace trellis::train
