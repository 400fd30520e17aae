// Operations by programs of core/: their times at a shape, and the file in which these are kept.
#include "sim/cluster/operation/core_program_timer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sim/cluster/workload/step_price.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/run/run.h"
#include "tests/folder.h"

namespace trellis::sim {
namespace {

namespace fs = std::filesystem;

class ProgramTimesTest : public testing::Test {
 protected:
  std::string text_of_file() const {
    std::ifstream file(only_file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path only_file() const {
    const std::vector<fs::path> all(fs::directory_iterator(folder), {});
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? fs::path() : all[0];
  }

  const Folder made;
  const fs::path folder = made.path();
  const ChipSpec chip = chip_named("trn1");
  const EngineRates one_core{chip.figures(), 1};
};

using Words = std::vector<std::pair<std::string, std::string>>;

double seconds_of_program(const std::string& name, const Words& parameters, const ChipSpec& chip) {
  const core::ShippedProgram& program = core::shipped_named(name);
  core::Arguments arguments(program.parameters);
  for (const auto& [key, value] : parameters) arguments.set(key, value);
  return in_seconds(core::run(program.build(arguments, chip), chip).time);
}

struct Case {
  OperationShape shape;
  std::string program;
  Words parameters;
};

std::vector<Case> cases() {
  return {{{.kind = "product", .rows = 512, .columns = 256, .inner = 384},
           "matmul",
           {{"M", "256"}, {"N", "512"}, {"K", "384"}}},
          {{.kind = "product", .rows = 256, .columns = 1024, .inner = 256, .type = "f32"},
           "matmul",
           {{"M", "256"}, {"N", "1024"}, {"K", "256"}, {"type", "f32"}}},
          {{.kind = "attention", .rows = 512, .columns = 512, .inner = 128, .batch = 3, .causal = true, .flash = true},
           "flash_attention",
           {{"seq_len", "512"}, {"heads", "3"}, {"causal", "yes"}}},
          {{.kind = "attention_gradient", .rows = 512, .columns = 512, .inner = 128, .flash = true},
           "flash_attention_backward",
           {{"seq_len", "512"}}},
          {{.kind = "rms_norm", .rows = 300, .columns = 1024}, "rms_norm", {{"rows", "300"}, {"columns", "1024"}}},
          {{.kind = "layer_norm", .rows = 256, .columns = 1024},
           "layer_norm",
           {{"rows", "256"}, {"columns", "1024"}, {"type", "bf16"}}},
          {{.kind = "softmax", .rows = 256, .columns = 1000}, "softmax", {{"rows", "256"}, {"columns", "1000"}}},
          {{.kind = "swiglu", .rows = 1000, .columns = 1000}, "swiglu", {{"n", "1000000"}}},
          {{.kind = "adamw", .rows = 1000, .columns = 1000, .type = "f32"},
           "adamw",
           {{"n", "1000000"}, {"parameters", "f32"}}}};
}

TEST_F(ProgramTimesTest, AreThoseOfTheProgramsAtTheShape) {
  for (const char* name : {"trn1", "trn2"}) {
    ChipSpec of = chip_named(name);
    Figures plain = of.figures();
    plain.set("operation.autocast", 0.0);  // f32 stays f32
    of = ChipSpec(name, plain);
    CoreProgramTimer times(of);
    for (const Case& c : cases()) {
      const auto took = times.of(c.shape, EngineRates(of.figures(), 1));
      ASSERT_TRUE(took) << c.shape.kind;
      EXPECT_TRUE(took->by_program);
      EXPECT_NEAR(took->total / seconds_of_program(c.program, c.parameters, of), 1, 1e-9)
          << name << " " << c.shape.kind;
      EXPECT_NEAR(times.of(c.shape, EngineRates(of.figures(), 2))->total, took->total / 2, 1e-12);
    }
    EXPECT_EQ(times.timed(), cases().size());
  }
}

// Operations that no program does, and the parts of an operation that its program leaves out, are timed by formulas.
TEST_F(ProgramTimesTest, WhatIsMoreIsAddedAsTheFormulasHaveIt) {
  CoreProgramTimer times(chip);
  const OperationShape plain{.kind = "product", .rows = 1024, .columns = 1024, .inner = 1024};
  OperationShape sum = plain;
  sum.accumulate = true, sum.result = "f32";
  EXPECT_NEAR(times.of(sum, one_core)->total - times.of(plain, one_core)->total,
              operation_time(sum, one_core).total - operation_time(plain, one_core).total, 1e-12);
  OperationShape served{
      .kind = "attention", .rows = 512, .columns = 512, .inner = 64, .batch = 4, .shared = 4, .flash = true};
  EXPECT_TRUE(times.of(served, one_core));
  served.flash = false;
  const std::vector<OperationShape> without = {
      served,
      {.kind = "rms_norm", .rows = 128, .columns = 128, .fused = true},
      {.kind = "rms_norm", .rows = 128, .columns = 10'000'000},  // a row is larger than a partition
      {.kind = "product", .rows = 16, .columns = 16, .inner = 16},
      {.kind = "copy", .rows = 128, .columns = 128}};
  for (const OperationShape& s : without) EXPECT_FALSE(times.of(s, one_core)) << s.kind;
}

// A large operation is not simulated in full: the time of the second half of the simulated part is repeated.
TEST_F(ProgramTimesTest, ARepeatedPartIsAsLongAsWhatItStandsFor) {
  CoreProgramTimer times(chip);
  const std::vector<Case> large = {
      {{.kind = "product", .rows = 65536, .columns = 2048, .inner = 4096},
       "matmul",
       {{"M", "2048"}, {"N", "65536"}, {"K", "4096"}}},
      {{.kind = "attention", .rows = 1024, .columns = 1024, .inner = 128, .batch = 12, .flash = true},
       "flash_attention",
       {{"seq_len", "1024"}, {"heads", "12"}}},
      {{.kind = "attention_gradient", .rows = 512, .columns = 512, .inner = 128, .batch = 12, .flash = true},
       "flash_attention_backward",
       {{"seq_len", "512"}, {"heads", "12"}}},
      {{.kind = "softmax", .rows = 20000, .columns = 1024}, "softmax", {{"rows", "20000"}, {"columns", "1024"}}},
      {{.kind = "adamw", .rows = 20000, .columns = 1024, .type = "f32"},
       "adamw",
       {{"n", "20480000"}, {"parameters", "f32"}}}};
  for (const Case& c : large)
    EXPECT_NEAR(times.of(c.shape, one_core)->total / seconds_of_program(c.program, c.parameters, chip), 1, 0.01)
        << c.shape.kind;
}

TEST_F(ProgramTimesTest, AreFoundOnDiskTheNextTime) {
  const auto timed = [&](const ChipSpec& of) {
    CoreProgramTimer times(of, folder);
    std::vector<double> all;
    for (const Case& c : cases()) all.push_back(times.of(c.shape, one_core)->total);
    times.keep();
    return std::pair(times.timed(), all);
  };
  const auto first = timed(chip), again = timed(chip);
  EXPECT_EQ(first.first, cases().size());
  EXPECT_EQ(again.first, 0U);
  EXPECT_EQ(again.second, first.second);
  Figures faster = chip.figures();
  faster.set("tensor.clock", 2 * faster.frequency("tensor.clock"));
  const auto other = timed(ChipSpec("trn1", faster));
  EXPECT_EQ(other.first, cases().size());  // all anew: times are kept for one set of figures
  EXPECT_LT(other.second[0], first.second[0]);
}

TEST_F(ProgramTimesTest, OfADamagedFileAreFoundAnew) {
  const auto timed = [&] {
    CoreProgramTimer times(chip, folder);
    const double seconds = times.of(cases()[0].shape, one_core)->total;
    times.keep();
    return std::tuple(seconds, times.timed(), times.damage());
  };
  const auto [seconds, first, none] = timed();
  EXPECT_EQ(none, "");
  const std::string whole = text_of_file();
  std::string changed = whole;
  changed[whole.size() - 2] = changed[whole.size() - 2] == '1' ? '2' : '1';
  for (const std::string& damaged :
       {changed, whole.substr(0, whole.size() / 2), std::string("\0\xff", 2), std::string()}) {
    const fs::path file = only_file();
    std::ofstream(file, std::ios::binary) << damaged;
    const auto [again, count, said] = timed();
    EXPECT_EQ(again, seconds);
    EXPECT_EQ(count, 1U) << damaged;
    EXPECT_EQ(said, file.string() + ": not as it was written: its times are found anew");
    EXPECT_EQ(text_of_file(), whole);
  }
}

// Of threads that save at once, the last leaves an undamaged file. Times of the others that it lacks are simulated
// again when they are needed.
TEST_F(ProgramTimesTest, OfManyAtOnceAreWhole) {
  std::vector<std::thread> all;
  for (int t = 0; t < 8; ++t)
    all.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        ProgramTimeCache kept(folder, "chip");
        EXPECT_EQ(kept.damage(), "");
        kept.add("program n=" + std::to_string(t * 100 + i), t * 100 + i);
        kept.save();
      }
    });
  for (std::thread& t : all) t.join();
  const ProgramTimeCache last(folder, "chip");
  EXPECT_EQ(last.damage(), "");
  EXPECT_FALSE(text_of_file().empty());
  int found = 0;
  for (int n = 0; n < 800; ++n)
    if (const auto time = last.find("program n=" + std::to_string(n))) {
      ++found;
      EXPECT_EQ(*time, n);
    }
  EXPECT_GT(found, 0);
}

TEST_F(ProgramTimesTest, OnDiskAreBounded) {
  for (std::size_t i = 0; i < ProgramTimeCache::most_files + 8; ++i) {
    ProgramTimeCache kept(folder, std::to_string(i));
    kept.add("program n=1", 1);
    kept.save();
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}),
            static_cast<std::ptrdiff_t>(ProgramTimeCache::most_files));
  ProgramTimeCache kept(folder, "many");
  for (std::size_t i = 0; i < ProgramTimeCache::most_times + 100; ++i) kept.add(std::to_string(i), 1);
  kept.save();
  ProgramTimeCache again(folder, "many");
  std::size_t there = 0;
  for (std::size_t i = 0; i < ProgramTimeCache::most_times + 100; ++i) there += again.find(std::to_string(i)) ? 1 : 0;
  EXPECT_EQ(there, ProgramTimeCache::most_times);
}

TEST_F(ProgramTimesTest, WithoutAWritableFolderAreAsGood) {
  CoreProgramTimer times(chip, "/dev/null/times");
  EXPECT_TRUE(times.of(cases()[0].shape, one_core));
  times.keep();
  EXPECT_EQ(times.damage(), "");
}

// A step of one rank without communication is the sum of its operations' times by core/.
TEST_F(ProgramTimesTest, MakeUpAStepOfOneRank) {
  const Machine machine = machine_named("trn1.2xlarge");
  const ExecutionGraph graph =
      read_graph("step",
                 "ranks 1\n"
                 "operation mm product rows=4096 columns=4096 inner=4096\n"
                 "operation core attention rows=4096 columns=4096 inner=128 batch=2 causal flash\n"
                 "operation back attention_gradient rows=4096 columns=4096 inner=128 batch=2 "
                 "causal flash\n"
                 "compute a mm*4 core\ncompute b mm*8 back after a\n");
  const ChipSpec of = chip_of(machine);
  const double sum = 12 * seconds_of_program("matmul", {{"M", "4096"}, {"N", "4096"}, {"K", "4096"}}, of) +
                     seconds_of_program("flash_attention", {{"heads", "2"}, {"causal", "yes"}}, of) +
                     seconds_of_program("flash_attention_backward", {{"heads", "2"}, {"causal", "yes"}}, of);
  StepOptions options;
  StepPricer formulas(graph, machine, options);
  options.programs = std::make_shared<CoreProgramTimer>(of, folder);
  StepPricer programs(graph, machine, options);
  const StepFactors plain;
  EXPECT_NEAR(in_seconds(programs.price(plain).time), sum, 1e-9);
  // The time by formulas differs by no more than docs/step.md states for large products and attention.
  EXPECT_NEAR(in_seconds(formulas.price(plain).time) / sum, 1, 0.1);
  double part = 0, all = 0;
  for (const OperationKindTime& k : programs.kinds(plain, 0)) part += k.by_programs, all += k.seconds;
  EXPECT_NEAR(all, sum, 1e-9);
  EXPECT_EQ(part, all);
  for (const OperationKindTime& k : formulas.kinds(plain, 0)) EXPECT_EQ(k.by_programs, 0);
}

TEST_F(ProgramTimesTest, GrowWithSlowMemoryAsTheFormulasDo) {
  const ExecutionGraph graph =
      read_graph("step", "ranks 1\noperation up adamw rows=1000 columns=1000 type=f32\ncompute a up\n");
  const auto growth = [&](bool by_programs) {
    double times[2] = {};
    for (const bool slow : {false, true}) {
      MachineSpec spec = machine_spec("trn1.2xlarge");
      if (slow) what_if(spec, "hbm:0:0.1");
      const Machine machine(std::move(spec));
      StepOptions options;
      if (by_programs) options.programs = std::make_shared<CoreProgramTimer>(chip_of(machine), folder);
      times[slow] = in_seconds(StepPricer(graph, machine, options).price({}).time);
    }
    return times[1] / times[0];
  };
  EXPECT_GT(growth(true), 5);
  EXPECT_NEAR(growth(true), growth(false), 1e-6);
}

TEST_F(ProgramTimesTest, OfAMachineAreOfItsFigures) {
  MachineSpec spec = machine_spec("trn1.2xlarge");
  what_if(spec, "tensor.clock=5.6GHz");
  EXPECT_EQ(chip_of(Machine(spec)).figures().frequency("tensor.clock"), 5.6e9);
  EXPECT_EQ(chip_of(machine_named("trn1.2xlarge")).figures().text(), chip.figures().text());
  EXPECT_THROW(chip_of(machine_named("ring:4")), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::sim
