#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <string>

#include "measure/published/record.h"
#include "measure/published/streaming_kernel.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/run/run.h"

// Records of kernels: the built-in program of that kind is run for its time. Where there is none, the work of engines
// and DMA is computed from the shape.
namespace trellis::measure {
namespace {

using namespace sim::core;
using sim::ChipSpec;

struct Asked {
  std::string program;
  std::vector<std::pair<std::string, std::string>> values;

  std::string text() const {
    std::string out = fmt::format("program {}", program);
    for (const auto& [name, value] : values) out += fmt::format(" {}={}", name, value);
    return out;
  }
};

std::string whole(double v) { return fmt::format("{}", whole_count("a size", v)); }

// Returns our name of a stage that the optimisation guide numbers or the tutorial names.
std::string stage_of(const std::string& word) {
  static const std::map<std::string, std::string> words = {
      {"v2", "tiled"},           {"v3", "hoist_load"},
      {"v4", "block_free"},      {"block_free_dimension", "block_free"},
      {"v5", "fully_optimised"}, {"fully_optimized", "fully_optimised"}};
  const auto found = words.find(word);
  return found == words.end() ? word : found->second;
}

// In a published search for the best kernel, only the last step can be compared: what the earlier kernels lacked isn't
// published.
bool is_last_step(const Record& r, const std::vector<Record>& all) {
  const std::string prefix = r.id.substr(0, r.id.rfind('.') + 1);
  const auto step = r.number("step");
  for (const Record& other : all)
    if (other.id.starts_with(prefix) && other.number("step") && *other.number("step") > *step) return false;
  return true;
}

std::string type_word(const Record& r, const std::string& otherwise) {
  const std::string word = r.word("dtype");
  if (word.empty()) return otherwise;
  return word == "bf16" ? "bf16" : word == "fp32" ? "f32" : word;
}

// Of the records of one profile, whose ids differ only in their last word, one gives the sizes: returns that one.
const Record& with_sizes(const Record& r, const std::vector<Record>& all) {
  if (r.number("M")) return r;
  const std::string prefix = r.id.substr(0, r.id.rfind('.'));
  for (const Record& other : all)
    if (other.number("M") && other.id.starts_with(prefix)) return other;
  return r;
}

std::optional<Asked> matmul_asked(const Record& r, const std::string& stage, const std::vector<Record>& all) {
  const Record& sized = with_sizes(r, all);
  const auto m = sized.number("M"), n = sized.number("N"), k = sized.number("K");
  if (!m || !n || !k) return std::nullopt;
  return Asked{
      "matmul",
      {{"M", whole(*m)}, {"N", whole(*n)}, {"K", whole(*k)}, {"type", type_word(sized, "bf16")}, {"stage", stage}}};
}

// NKIBench has its sizes in the id: rope_single_freq_apply_b1_d128_h64_n4096.
double size_in_name(const Record& r, char letter) {
  std::smatch found;
  const std::regex pattern(fmt::format("_{}(\\d+)", letter));
  return std::regex_search(r.id, found, pattern) ? std::stod(found[1]) : 1;
}

std::optional<Asked> benchmark_asked(const Record& r) {
  const auto about = [&](std::string_view word) { return r.id.find(word) != std::string::npos; };
  const auto size = [&](char letter) { return whole(size_in_name(r, letter)); };
  if (about(".mamba"))
    return Asked{
        "mamba",
        {{"batch", "1"}, {"seq_len", size('m')}, {"channels", size('c')}, {"state", size('s')}, {"stage", "v3"}}};
  if (about(".rope"))
    return Asked{"rope",
                 {{"heads", whole(size_in_name(r, 'b') * size_in_name(r, 'h'))},
                  {"positions", size('n')},
                  {"size", size('d')},
                  {"run", "1"},
                  {"tables", "reloaded"}}};
  if (about(".adamw")) return Asked{"adamw", {{"n", whole(size_in_name(r, 'm') * size_in_name(r, 'n'))}}};
  if (about(".silu"))
    return Asked{"swiglu", {{"n", whole(size_in_name(r, 'm') * size_in_name(r, 'n'))}, {"type", "f32"}, {"up", "no"}}};
  return std::nullopt;
}

std::optional<Asked> program_for(const Record& r, const std::vector<Record>& all) {
  const auto about = [&](std::string_view word) { return r.id.find(word) != std::string::npos; };
  if (about("matmul_tutorial") || about("matmul_opt")) {
    const std::string stage = r.word("stage");
    return matmul_asked(r, stage.empty() ? "fully_optimised" : stage_of(stage), all);
  }
  if (about(".autotune.lhsT_rhs.kernel.") || about(".autotune.ladder4."))
    return matmul_asked(r, "fully_optimised", all);
  if (about("gemm_gelu") || about(".autotune.")) return std::nullopt;
  if (about("gemm")) return matmul_asked(r, "fully_optimised", all);
  if (about("nkibench")) return benchmark_asked(r);
  // The tutorial's text shows 300 x 1000, which is 2.4 MB; its script measures 4096 x 8192, as its milliseconds
  // require.
  if (about("layernorm.trn1"))
    return Asked{"layer_norm", {{"rows", "4096"}, {"columns", "8192"}, {"stage", r.word("stage")}}};
  if (about("mamba") && r.number("channels")) {
    const std::string stage = r.word("stage").empty() ? "v3" : r.word("stage");
    return Asked{"mamba",
                 {{"batch", whole(r.number("batch").value_or(1))},
                  {"seq_len", whole(r.number("seq_len").value_or(512))},
                  {"channels", whole(*r.number("channels"))},
                  {"state", whole(r.number("state").value_or(16))},
                  {"stage", stage}}};
  }
  if (about("attention") && r.number("seq_len") && r.number("d").value_or(128) == 128)
    return Asked{"flash_attention", {{"seq_len", whole(*r.number("seq_len"))}, {"type", type_word(r, "bf16")}}};
  return std::nullopt;
}

struct Ran {
  RunTotals totals;
  double flops;
};

// Runs the program, or returns what it gave before: several records of one profile need the same run.
const Ran& ran(const Asked& asked, const ChipSpec& chip) {
  static std::map<std::string, Ran> done;
  const std::string key = asked.text() + chip.figures().text();
  if (const auto found = done.find(key); found != done.end()) return found->second;
  const ShippedProgram& program = shipped_named(asked.program);
  Arguments arguments(program.parameters);
  for (const auto& [name, value] : asked.values) arguments.set(name, value);
  const RunTotals totals = run(program.build(arguments, chip), chip);
  return done[key] = {totals, totals.flops};
}

double peak_flops(const ChipSpec& chip) { return 2.0 * chip.tensor.rows * chip.tensor.columns * chip.engine[0].clock; }

sim::Time dma_sum(const RunTotals& t) {
  sim::Time sum = 0;
  for (const sim::Time busy : t.dma_busy) sum += busy;
  return sum;
}

// Answers what a profile reports, from the simulated run: an engine's busy time, a utilisation, or else the run's time.
// Products of f32 are counted once, as profiles do.
std::optional<RecordAnswer> measured_of(const Record& r, const Ran& ran, const ChipSpec& chip, const std::string& by) {
  const RunTotals& t = ran.totals;
  const auto timed = [&](sim::Time time, std::string what) {
    const auto value = time_in(r.unit, time);
    return value ? RecordAnswer{.simulated = value, .by = by + what}
                 : RecordAnswer::no(fmt::format("unit '{}'", r.unit));
  };
  const std::string last = r.id.substr(r.id.rfind('.') + 1);
  if (last == "per_instruction" && t.streams[0].instructions == 0)
    return RecordAnswer::no("the program gives Tensor no instruction");
  if (last == "per_instruction")
    return timed(t.streams[0].busy / static_cast<sim::Time>(t.streams[0].instructions) / chip.tensor.passes_f32,
                 ", Tensor's time a pass");
  if (last == "tensor_active_ms") return timed(t.streams[0].busy, ", Tensor busy");
  if (last == "vector_active_ms") return timed(t.streams[1].busy, ", Vector busy");
  if (last == "dma_active_ms") return timed(t.dma_any, ", at least one DMA engine busy");
  if (last == "dma_packet_time_ms") return timed(dma_sum(t), ", all DMA engines' time");
  if (last == "hfu" || last == "mfu_pct" || last == "mfu")
    return RecordAnswer{.simulated = 100 * ran.flops / sim::in_seconds(t.time) / peak_flops(chip),
                        .by = by + ", of the peak"};
  if (last == "mbu_pct") {
    const double rate = chip.memory.hbm_rate / chip.memory.hbm_stacks;
    return RecordAnswer{.simulated = 100 * (t.hbm_read + t.hbm_written) / sim::in_seconds(t.time) / rate,
                        .by = by + ", of a stack's rate"};
  }
  if (r.unit == "%") return std::nullopt;
  return timed(t.time, "");
}

// Estimates the time from a profile's counts: that of DMA or of Tensor, whichever is busy for longer, and the latencies
// of the first load and the last store.
std::optional<RecordAnswer> by_shape(const Record& r, const ChipSpec& chip) {
  const auto read = r.number("hbm_read_bytes"), written = r.number("hbm_write_bytes");
  if (!read || !written) return std::nullopt;
  const double flops = r.number("hardware_flops").value_or(0), transposes = r.number("transpose_flops").value_or(0);
  const double rate = chip.dma.engine_rate * chip.dma.engines;
  const double dma = (*read + *written) / rate;
  // Tensor's cycles for a row in one of an f32 product's two passes, as a profile's FLOPs count both. Of the load
  // before a pass, the cycles that no earlier product hides are shared out to the rows that the pass moves: 512 at
  // most, 128 for a transpose.
  const auto cycles = [&](double rows) {
    return chip.tensor.row_cycles_f32 / chip.tensor.passes_f32 + chip.tensor.load_exposed / rows;
  };
  const double tensor =
      ((flops - transposes) * cycles(chip.tensor.columns * 4) + transposes * cycles(chip.tensor.columns)) /
      peak_flops(chip);
  const double ends = sim::in_seconds(2 * (chip.dma.start_hardware + chip.dma.done + chip.dma.stagger));
  const auto simulated = static_cast<sim::Time>((std::max(dma, tensor) + ends) * 1e12);
  const auto value = time_in(r.unit, simulated);
  if (!value) return RecordAnswer::no(fmt::format("unit '{}'", r.unit));
  return RecordAnswer{.simulated = value, .by = dma > tensor ? "shape: DMA's bytes" : "shape: Tensor's rows"};
}

// Whether the record is of the fastest published version of its kernel; slower ones lack something that isn't
// published. A version that computes in another type, or by other engines, counts as another kernel.
bool is_fastest(const Record& r, const std::vector<Record>& all) {
  const auto another = [](const Record& one) {
    return one.id.find("bf16") != one.id.npos || one.id.find("_pe") != one.id.npos;
  };
  const std::string prefix = r.id.substr(0, r.id.find(r.word("op")) + r.word("op").size() + 1);
  return !another(r) && std::ranges::none_of(all, [&](const Record& other) {
    return other.id.starts_with(prefix) && !another(other) && other.value < r.value;
  });
}

// NKIBench's kernels by other authors. They are published as kernels of one core, but some move bytes at twice the rate
// of its DMA engines, so two cores are assumed to share the work. In case they do not, the range reaches to one core's
// time.
std::optional<RecordAnswer> of_two_cores(const Record& r, const std::vector<Record>& all, const ChipSpec& chip) {
  const std::string op = r.word("op");
  const auto size = [&](const char* key) { return whole(r.number(key).value_or(1)); };
  const bool elements = r.number("M") && r.number("N"), positions = r.number("H") && r.number("N") && r.number("D");
  if (((op == "adamw" || op == "silu") && !elements) || (op == "rope_single_freq_apply" && !positions))
    return RecordAnswer::no("its sizes are not given");
  std::optional<Asked> asked;
  if (op == "matmul") asked = matmul_asked(r, "fully_optimised", all);
  if (op == "adamw") asked = Asked{"adamw", {{"n", whole(*r.number("M") * *r.number("N"))}}};
  if (op == "silu")
    asked = Asked{"swiglu", {{"n", whole(*r.number("M") * *r.number("N"))}, {"type", "f32"}, {"up", "no"}}};
  if (op == "mamba")
    asked =
        Asked{"mamba",
              {{"batch", "1"}, {"seq_len", size("M")}, {"channels", size("C")}, {"state", size("S")}, {"stage", "v3"}}};
  if (op == "rope_single_freq_apply")
    asked = Asked{"rope",
                  {{"heads", whole(r.number("B").value_or(1) * *r.number("H"))},
                   {"positions", size("N")},
                   {"size", size("D")},
                   {"run", "1"},
                   {"tables", "reloaded"}}};
  if (!asked) return RecordAnswer::no("no program of this kind ships, and its bytes and operations aren't given");
  if (!is_fastest(r, all))
    return RecordAnswer::no("a version on the way to a better one: what it lacks isn't published");
  const auto alone = time_in(r.unit, ran(*asked, chip).totals.time);
  if (!alone) return RecordAnswer::no(fmt::format("unit '{}'", r.unit));
  return RecordAnswer{
      .simulated = *alone / 2, .range = {*alone / 2, *alone}, .by = asked->text() + ", shared by two cores"};
}

std::optional<RecordAnswer> kernel(const Record& r, const std::vector<Record>& all) {
  if (r.kind() != "kernel") return std::nullopt;
  const auto chip = chip_of(r);
  if (!chip) return RecordAnswer::no(fmt::format("unknown generation '{}'", r.generation));
  if (r.says("host dispatch") || r.says("compiled from framework"))
    return RecordAnswer::no("it is the host's time, or a compiler's, that it measures");
  if (r.id.starts_with("kernel.kda.")) return of_two_cores(r, all, *chip);
  if (r.word("launch").starts_with("host") || r.says("compiler baseline") || r.id.find(".compiler.") != r.id.npos)
    return RecordAnswer::no("it is the host's time, or a compiler's, that it measures");
  if (auto answer = streamed(r, *chip)) return *answer;
  if (r.number("step") && r.id.find(".ladder4.") == r.id.npos &&
      (r.id.find(".ladder") != r.id.npos || !is_last_step(r, all)))
    return RecordAnswer::no("a step on the way to a better kernel: what it lacks isn't published");
  if (const auto asked = program_for(r, all); asked && shipped().contains(asked->program)) {
    const Ran& found = ran(*asked, *chip);
    if (auto answer = measured_of(r, found, *chip, asked->text())) return answer;
  }
  if (auto answer = by_shape(r, *chip)) return answer;
  return RecordAnswer::no("no program of this kind ships, and its bytes and operations aren't given");
}

const RegisteredRecordModel registered("kernels", kernel);

}  // namespace
}  // namespace trellis::measure
