// Checkpoints: saved by one layout and loaded by another, damaged, cut off, and resumed to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/folder.h"
#include "tests/train/ranks/runs.h"
#include "tests/why.h"
#include "train/checkpoint/hf_export.h"
#include "train/checkpoint/reshard.h"
#include "train/checkpoint/save_load.h"
#include "train/trainer/trainer.h"
#include "train/update/optimizer_state.h"

namespace trellis::train {
namespace {

namespace fs = std::filesystem;

StepConfig shaped(Rank tensor, Rank pipeline, bool zero, Precision precision) {
  StepConfig c = small_llama();
  c.strategy = {.tensor = tensor, .pipeline = pipeline, .zero1 = zero};
  c.precision = precision;
  return c;
}

void steps(Job& job, std::size_t from, std::size_t to) {
  for (std::size_t s = from; s < to; ++s) {
    set_batches(job, s);
    job.run({.step = static_cast<std::int64_t>(s + 1), .learning_rate = 1e-2});
  }
}

// Saves a checkpoint after two steps.
void save_two(const fs::path& root, const StepConfig& c, Rank world, SaveOptions o = {}) {
  expect_on_threads(world, [&](ccl::Communicator& w) {
    Job job(c, w);
    CheckpointSaver checkpoints(root, w, o);
    steps(job, 0, 2);
    checkpoints.save(job, 2);
    checkpoints.wait();
  });
}

std::vector<float> everything(const fs::path& tag) {
  std::vector<float> all;
  const CheckpointReader source(tag);
  for (const std::string& name : source.names()) {
    const TensorSlice whole = source.whole(name);
    const std::size_t at = all.size();
    all.resize(at + whole.elements());
    source.read(name, whole, all.data() + at);
  }
  return all;
}

TEST(Checkpoint, LoadsIntoEveryOtherLayout) {
  const Folder folder;
  for (Precision p : {Precision::fp32, Precision::mixed, Precision::bf16_sr}) {
    const fs::path first = folder.path() / std::string(name(p)) / "first";
    save_two(first, shaped(2, 2, true, p), 8);
    const std::vector<float> saved = everything(first / tag_name(2));
    for (const auto& [tensor, pipeline, world, zero] :
         {std::tuple{1, 1, 1, false}, {4, 1, 4, false}, {1, 4, 8, true}, {2, 1, 8, true}}) {
      const fs::path second = folder.path() / "second";
      fs::remove_all(second);
      expect_on_threads(world, [&](ccl::Communicator& w) {
        Job job(shaped(tensor, pipeline, zero, p), w);
        EXPECT_TRUE(load(job, CheckpointReader(first / tag_name(2))));
        CheckpointSaver checkpoints(second, w, {});
        checkpoints.save(job, 2);
        checkpoints.wait();
      });
      EXPECT_EQ(everything(second / tag_name(2)), saved) << name(p) << " T" << tensor << " P" << pipeline;
    }
  }
}

TEST(Checkpoint, IsCutAnewWithoutAJob) {
  const Folder folder;
  for (Precision p : {Precision::fp32, Precision::mixed}) {
    const fs::path root = folder.path() / std::string(name(p));
    save_two(root / "first", shaped(2, 2, true, p), 8);
    const CheckpointReader source(root / "first" / tag_name(2));
    for (const auto& [tensor, pipeline, world, zero] : {std::tuple{4, 1, 8, true}, {1, 2, 2, false}}) {
      const fs::path tag = reshard(source, shaped(tensor, pipeline, zero, p), world, root / "second");
      EXPECT_EQ(read_done(tag).files.size(), static_cast<std::size_t>(world));
      EXPECT_EQ(everything(tag), everything(root / "first" / tag_name(2)));
      EXPECT_EQ(CheckpointReader(tag).verify(), source.names().size());
    }
  }
}

TEST(Checkpoint, IsNotCutForAnotherModel) {
  const Folder folder;
  StepConfig c = shaped(2, 1, false, Precision::fp32);
  SaveOptions o;
  o.origin = origin_of({.step = c, .trainer = {}, .data = {}, .experiment = {}}, {}, "");
  save_two(folder.path() / "first", c, 2, o);
  const CheckpointReader source(folder.path() / "first" / tag_name(2));
  c.seed = 99, c.strategy.tensor = 1;  // settings that change no weight's meaning
  EXPECT_EQ(read_done(reshard(source, c, 1, folder.path() / "second")).origin.settings, source.info().origin.settings);
  c.model.num_layers = 2;
  EXPECT_EQ(why([&] { reshard(source, c, 1, folder.path() / "third"); }),
            "the checkpoint is of another model: model.num_layers is 2, was 4");
  EXPECT_FALSE(fs::exists(folder.path() / "third"));
}

TEST(Checkpoint, AdaptersAreMergedIntoTheirWeights) {
  const Folder folder;
  StepConfig c = shaped(2, 1, false, Precision::fp32);
  c.lora = {.rank = 4, .alpha = 8, .targets = {"q_proj", "down_proj"}};
  save_two(folder.path(), c, 2);
  const fs::path file = folder.path() / "merged.safetensors";
  const CheckpointReader source(folder.path() / tag_name(2));
  EXPECT_EQ(source.info().lora_alpha, 8);
  export_weights(source, file, {.merge = true});
  // The merged model without adapters has the loss of the model with them.
  double losses[2];
  for (int merged = 0; merged < 2; ++merged)
    expect_on_threads(1, [&](ccl::Communicator& w) {
      StepConfig own = shaped(1, 1, false, Precision::fp32);
      if (merged == 0) own.lora = c.lora;
      Job job(own, w);
      load(job, merged == 1 ? CheckpointReader(file) : CheckpointReader(folder.path() / tag_name(2)));
      set_batches(job, 7);
      losses[merged] = job.run({.step = 1, .learning_rate = 0}).loss;
    });
  EXPECT_NEAR(losses[0], losses[1], 1e-6);
  EXPECT_FALSE(CheckpointReader(file).has("model.layers.0.self_attn.q_proj.lora_A.weight"));
  save_two(folder.path() / "plain", shaped(1, 1, false, Precision::fp32), 1);
  EXPECT_THROW(
      export_weights(CheckpointReader(folder.path() / "plain" / tag_name(2)), file, {.merge = true, .alpha = 8}),
      std::invalid_argument);
}

// Adapters train, so that they have masters; frozen weights have none.
TEST(Checkpoint, AdaptersMergedInF32AreThoseOfTheMasters) {
  const Folder folder;
  StepConfig c = shaped(1, 1, false, Precision::mixed);
  c.lora = {.rank = 4, .alpha = 8, .targets = {"down_proj"}};
  save_two(folder.path(), c, 1, {.masters = true});
  const CheckpointReader source(folder.path() / tag_name(2));
  export_hf(source, c, folder.path() / "hf", {.type = "f32", .merge = {.merge = true}});
  const auto values = [](const CheckpointReader& from, const std::string& name) {
    std::vector<float> all(from.whole(name).elements());
    from.read(name, from.whole(name), all.data());
    return all;
  };
  const std::string stem = "model.layers.1.mlp.down_proj.";
  const auto merged = values(CheckpointReader(folder.path() / "hf"), stem + "weight");
  const auto weight = values(source, stem + "weight");
  const std::size_t columns = source.whole(stem + "weight").columns;
  const auto apart = [&](const std::string& kind) {
    const auto a = values(source, kind + stem + "lora_A.weight"), b = values(source, kind + stem + "lora_B.weight");
    double most = 0;
    for (std::size_t i = 0; i < weight.size(); ++i) {
      double sum = weight[i];
      for (std::size_t k = 0; k < 4; ++k)
        sum += 2.0 * static_cast<double>(b[i / columns * 4 + k]) * static_cast<double>(a[k * columns + i % columns]);
      most = std::max(most, std::fabs(sum - static_cast<double>(merged[i])));
    }
    return most;
  };
  EXPECT_LT(apart("master:"), 1e-7);
  EXPECT_GT(apart(""), 1e-6) << "the copies that training computed with are the same as the masters";
}

TEST(Checkpoint, TheBestStayAndTheNewestWhereAsked) {
  const Folder folder;
  const auto kept = [&](Retention keep, const char* monitor = "val_loss") {
    fs::remove_all(folder.path());
    const double losses[] = {3, 1, 2, std::nan(""), 2.5};
    for (std::int64_t step = 1; step <= 5; ++step) {
      fs::create_directories(folder.path() / tag_name(step));
      write_done(folder.path() / tag_name(step), {.step = step, .monitor = monitor, .monitored = losses[step - 1]});
    }
    keep_tags(folder.path(), keep);
    std::vector<std::int64_t> steps;
    for (const std::string& tag : complete_tags(folder.path())) steps.push_back(std::stoll(tag.substr(5)));
    return steps;
  };
  using Steps = std::vector<std::int64_t>;
  EXPECT_EQ(kept({.most = 2}), (Steps{4, 5}));
  EXPECT_EQ(kept({.most = 2}, "global_step"), (Steps{4, 5})) << "a step is its own value, whatever was monitored";
  EXPECT_EQ(kept({.most = 2, .lowest = true}), (Steps{1, 2}));
  EXPECT_EQ(kept({.most = 2, .monitor = "val_loss", .lowest = true}), (Steps{2, 3}));
  EXPECT_EQ(kept({.most = 2, .monitor = "val_loss", .lowest = true, .newest = true}), (Steps{2, 3, 5}));
  EXPECT_EQ(kept({.most = 1, .monitor = "val_loss", .newest = true}), (Steps{1, 5}));
  EXPECT_EQ(kept({.most = 2, .newest = true}), (Steps{4, 5}));
  EXPECT_EQ(kept({.most = -1, .monitor = "val_loss"}).size(), 5U);
  EXPECT_EQ(kept({.most = 1, .monitor = "another"}), (Steps{5})) << "no tag has a value of that name";
}

TEST(Checkpoint, OfTwoAsGoodTheLaterStepStays) {
  const Folder folder;
  for (const std::int64_t step : {99'999'999, 100'000'000}) {  // whose names have another order
    fs::create_directories(folder.path() / tag_name(step));
    write_done(folder.path() / tag_name(step), {.step = step, .monitor = "val_loss", .monitored = 1});
  }
  keep_tags(folder.path(), {.most = 1, .monitor = "val_loss", .lowest = true});
  EXPECT_EQ(complete_tags(folder.path()), std::vector<std::string>{tag_name(100'000'000)});
}

TEST(Checkpoint, ResumesToTheBit) {
  const Folder folder;
  const StepConfig c = shaped(2, 2, true, Precision::bf16_sr);
  std::vector<float> straight, resumed;
  expect_on_threads(8, [&](ccl::Communicator& w) {
    Job job(c, w);
    CheckpointSaver checkpoints(folder.path() / "a", w, {.asynchronous = true, .keep = {.most = -1}});
    steps(job, 0, 2);
    checkpoints.save(job, 2);
    steps(job, 2, 4);
    checkpoints.save(job, 4);
    checkpoints.wait();
  });
  expect_on_threads(8, [&](ccl::Communicator& w) {
    Job job(c, w);
    load(job, CheckpointReader(folder.path() / "a" / tag_name(2)));
    CheckpointSaver checkpoints(folder.path() / "b", w, {});
    steps(job, 2, 4);
    checkpoints.save(job, 4);
    checkpoints.wait();
  });
  EXPECT_EQ(everything(folder.path() / "a" / tag_name(4)), everything(folder.path() / "b" / tag_name(4)));
}

std::string said_of(const fs::path& tag) {
  return why<std::exception>([&] { CheckpointReader(tag).verify(); });
}

TEST(Checkpoint, DamageIsNamedAndOlderTagsStayGood) {
  const Folder folder;
  const StepConfig c = shaped(2, 1, false, Precision::fp32);
  expect_on_threads(2, [&](ccl::Communicator& w) {
    Job job(c, w);
    CheckpointSaver checkpoints(folder.path(), w, {.keep = {.most = 2}});
    for (std::int64_t step : {1, 2, 3}) checkpoints.save(job, step);
  });
  EXPECT_EQ(complete_tags(folder.path()), (std::vector<std::string>{tag_name(2), tag_name(3)}));
  EXPECT_FALSE(fs::exists(folder.path() / tag_name(1)));
  const fs::path tag = folder.path() / tag_name(3), shard = tag / "dp_rank_00_tp_rank_01_pp_rank_00.safetensors";
  EXPECT_EQ(said_of(tag), "");
  {
    std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-100, std::ios::end);
    file.put('\x55');
  }
  EXPECT_NE(said_of(tag).find("its checksum differs"), std::string::npos) << said_of(tag);
  EXPECT_NE(said_of(tag).find("tp_rank_01"), std::string::npos);
  fs::resize_file(shard, fs::file_size(shard) - 1);
  EXPECT_NE(said_of(tag).find("expected"), std::string::npos);
  fs::remove(shard);
  EXPECT_NE(said_of(tag).find("tp_rank_01_pp_rank_00.safetensors is missing"), std::string::npos);
  fs::remove(tag / "done");
  EXPECT_NE(said_of(tag).find("not a complete checkpoint"), std::string::npos);
  EXPECT_EQ(said_of(folder.path() / tag_name(2)), "");
}

TEST(Checkpoint, AFolderThatCannotBeWrittenEndsEveryRank) {
  const Folder folder;
  const std::string said = on_threads(2, [&](ccl::Communicator& w) {
    Job job(shaped(2, 1, false, Precision::fp32), w);
    CheckpointSaver checkpoints(folder.path(), w, {});
    if (w.rank() == 0)
      fs::create_directories(folder.path() / tag_name(1) / "dp_rank_00_tp_rank_01_pp_rank_00.safetensors.part");
    w.barrier();
    checkpoints.save(job, 1);
  });
  EXPECT_NE(said.find("rank 1"), std::string::npos) << said;
  EXPECT_NE(said.find("1 ranks could not write"), std::string::npos) << said;
  EXPECT_TRUE(complete_tags(folder.path()).empty());
}

// If rank 0 fails in what it does alone, before the shards or after them, every rank fails.
TEST(Checkpoint, WhatTheFirstRankCannotWriteEndsEveryRank) {
  for (const bool before : {true, false}) {
    const Folder folder;
    // A file is in the new tag's place, or an older tag cannot be removed.
    folder.put(before ? tag_name(2) : tag_name(1) + "/done/kept", "");
    const std::string said = on_threads(2, [&](ccl::Communicator& w) {
      Job job(shaped(2, 1, false, Precision::fp32), w);
      CheckpointSaver checkpoints(folder.path(), w, {.asynchronous = !before});
      checkpoints.save(job, 2);
      checkpoints.wait();
    });
    EXPECT_NE(said.find("rank 0: "), std::string::npos) << said;
    EXPECT_NE(said.find("rank 1: checkpoint " + (folder.path() / tag_name(2)).string() + ": 1 ranks could not write"),
              std::string::npos)
        << said;
  }
}

// A configuration in f32 has no masters: from a mixed-precision checkpoint, its parameters are read from the masters,
// not from the narrower parameters.
TEST(Checkpoint, MastersBecomeTheParametersInF32) {
  const Folder folder;
  save_two(folder.path() / "first", shaped(2, 2, true, Precision::mixed), 8);
  const CheckpointReader source(folder.path() / "first" / tag_name(2));
  const StepConfig wide = shaped(2, 1, true, Precision::fp32);
  const CheckpointReader cut(reshard(source, wide, 4, folder.path() / "second"));
  const auto whole = [](const CheckpointReader& from, const std::string& name) {
    std::vector<float> values(from.whole(name).elements());
    from.read(name, from.whole(name), values.data());
    return values;
  };
  bool differs = false;
  for (const std::string& name : source.names()) {
    if (!source.has("master:" + name)) continue;
    EXPECT_EQ(whole(cut, name), whole(source, "master:" + name)) << name;
    differs = differs || whole(source, name) != whole(source, "master:" + name);
  }
  EXPECT_TRUE(differs) << "the parameters are no narrower than their masters";
  expect_on_threads(4, [&](ccl::Communicator& w) {
    Job job(wide, w), alone(wide, w);
    EXPECT_TRUE(load(job, source));
    load_parameters(alone.step(), alone.runner(), source);
    for (const Parameter& p : job.parameters().all()) {
      std::vector<float> saved(p.slice.elements());
      source.read("master:" + p.name, p.slice, saved.data());
      EXPECT_EQ(job.values(p), saved) << p.name;
      EXPECT_EQ(alone.values(p), saved) << p.name;
    }
  });
}

// The configuration has one adapter more than the checkpoint, so all moments begin anew, also those that the checkpoint
// has.
TEST(Checkpoint, MomentsAreLoadedForAllOrForNone) {
  const Folder folder;
  StepConfig c = shaped(2, 1, true, Precision::fp32);
  c.lora = {.rank = 4, .alpha = 8, .targets = {"q_proj"}};
  save_two(folder.path(), c, 4);
  c.lora.targets.push_back("down_proj");
  expect_on_threads(4, [&](ccl::Communicator& w) {
    Job job(c, w);
    steps(job, 0, 1);
    EXPECT_FALSE(load(job, CheckpointReader(folder.path() / tag_name(2))));
    for (const OptimizerState& s : job.step().states)
      for (const TensorId moment : {s.first, s.second}) {
        const std::size_t elements = moment == no_tensor ? 0 : s.elements();
        for (std::size_t i = 0; i < elements; ++i) ASSERT_EQ(job.runner().as<float>(moment)[i], 0) << s.parameter->name;
      }
  });
}

TEST(Checkpoint, WeightsAreASafetensorsFileWithTheirOwnNames) {
  const Folder folder;
  save_two(folder.path(), shaped(2, 2, true, Precision::fp32), 4);
  const fs::path file = folder.path() / "llama.safetensors";
  export_weights(CheckpointReader(folder.path() / tag_name(2)), file);
  const CheckpointReader weights(file);
  EXPECT_TRUE(weights.has("model.layers.3.self_attn.k_proj.weight"));
  EXPECT_EQ(weights.names().size(), 4 * 9 + 3U);
  EXPECT_EQ(weights.whole("model.layers.0.mlp.down_proj.weight").rows, 32U);
  expect_on_threads(2, [&](ccl::Communicator& w) {
    Job job(shaped(2, 1, false, Precision::fp32), w);
    EXPECT_FALSE(load(job, weights));
  });
}

}  // namespace
}  // namespace trellis::train
