#include "tools/train/neuron_environment.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "measure/bench_names.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::tools {

using namespace measure;
namespace {

class Reading {
 public:
  Reading(train::JobConfig& job, const ReadVariable& read) : job_(job), read_(read) {}

  std::vector<std::string> run() {
    precision();
    buckets();
    cache();
    if (const auto seed = number("NEURON_RT_STOCHASTIC_ROUNDING_SEED", INT64_MAX)) {
      job_.step.seed = static_cast<std::uint64_t>(*seed);
      note("NEURON_RT_STOCHASTIC_ROUNDING_SEED",
           fmt::format("seed {}, of initial values, data and rounding alike", *seed));
    }
    const std::pair<const char*, const char*> idle[] = {
        {"NEURON_CC_FLAGS", "nothing is compiled; --cache_dir alone is heeded"},
        {"NEURON_RT_EXEC_TIMEOUT", "TRELLIS_TIMEOUT is the time that ranks wait for each other"},
        {"NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "steps are not queued"},
        {"NEURON_FUSE_SOFTMAX", "softmax is one kernel"},
        {"NEURON_RT_ROOT_COMM_ID", "MASTER_ADDR and MASTER_PORT say where ranks meet"},
        {"NEURON_RT_VISIBLE_CORES", "ranks are processes of the host"},
        {"NEURON_RT_NUM_CORES", "ranks are processes of the host"},
        {"NXD_CPU_MODE", "there is no other mode"}};
    for (const auto& [name, why] : idle)
      if (read_(name) != nullptr) note(name, fmt::format("has no effect here: {}", why));
    return std::move(notes_);
  }

 private:
  void note(const char* name, const std::string& text) { notes_.push_back(fmt::format("{}: {}", name, text)); }

  std::optional<std::int64_t> number(const char* name, std::int64_t most) const {
    const char* const text = read_(name);
    if (text == nullptr || *text == '\0') return std::nullopt;
    return text::count(name, text, 0, most);
  }
  bool on(const char* name) const { return number(name, 1).value_or(0) == 1; }

  // The deprecated XLA_USE_BF16 and XLA_DOWNCAST_BF16 also turn stochastic rounding on, as upstream, unless
  // NEURON_RT_STOCHASTIC_ROUNDING_EN is 0.
  void precision() {
    using train::Precision;
    const bool use = on("XLA_USE_BF16"), down = on("XLA_DOWNCAST_BF16");
    const auto rounding = number("NEURON_RT_STOCHASTIC_ROUNDING_EN", 1);
    if (use && down) throw std::invalid_argument("XLA_USE_BF16 and XLA_DOWNCAST_BF16 are both 1: expected one of them");
    Precision& p = job_.step.precision;
    const Precision before = p;
    if (use) p = rounding == 0 ? Precision::bf16 : Precision::bf16_sr;
    if (down) p = rounding == 0 ? Precision::mixed : Precision::mixed_sr;
    if (!use && !down && rounding == 1 && p == Precision::bf16) p = Precision::bf16_sr;
    if (!use && !down && rounding == 1 && p == Precision::mixed) p = Precision::mixed_sr;
    if (before != p && before != Precision::fp32 && (use || down))
      text::refuse("{} is 1 and precision.type {}: expected fp32 or {}", use ? "XLA_USE_BF16" : "XLA_DOWNCAST_BF16",
                   train::name(before), train::name(p));
    if (before != p)
      note(use    ? "XLA_USE_BF16"
           : down ? "XLA_DOWNCAST_BF16"
                  : "NEURON_RT_STOCHASTIC_ROUNDING_EN",
           fmt::format("precision.type {}", train::name(p)));
    else if (rounding == 1 && p != Precision::bf16_sr && p != Precision::mixed_sr)
      note("NEURON_RT_STOCHASTIC_ROUNDING_EN", fmt::format("has no effect with precision.type {}", train::name(p)));
  }

  void buckets() {
    const char* const name =
        job_.step.strategy.zero1 ? "ALL_GATHER_REDUCE_SCATTER_BUCKET_CAP_MB" : "ALLREDUCE_BUCKET_CAP_MB";
    const auto cap = number(name, 1 << 20);
    if (!cap || job_.step.optimizer.bucket_mb != 0) return;
    job_.step.optimizer.bucket_mb = static_cast<std::size_t>(*cap);
    note(name, fmt::format("buckets of {} MB", *cap));
  }

  // --cache_dir in the compiler's flags wins, as upstream.
  void cache() {
    const char *const url = read_("NEURON_COMPILE_CACHE_URL"), *const flags = read_("NEURON_CC_FLAGS");
    std::string folder = url == nullptr ? "" : url;
    for (const std::string_view word : text::words(flags == nullptr ? "" : flags))
      if (constexpr std::string_view option = "--cache_dir="; word.starts_with(option))
        folder = word.substr(option.size());
    if (folder.empty()) return;
    if (folder.find("://") != folder.npos)
      text::refuse("NEURON_COMPILE_CACHE_URL is {}: expected a folder; object stores are out of scope", folder);
    job_.experiment.cache = folder;
    note(url == nullptr ? "NEURON_CC_FLAGS" : "NEURON_COMPILE_CACHE_URL",
         fmt::format("proved steps are kept in {}", folder));
  }

  train::JobConfig& job_;
  const ReadVariable& read_;
  std::vector<std::string> notes_;
};

}  // namespace

std::vector<std::string> apply_neuron_environment(train::JobConfig& job, const ReadVariable& read) {
  return Reading(job, read).run();
}

}  // namespace trellis::tools
