#include "train/trainer/resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "text/refuse.h"
#include "train/checkpoint/save_load.h"
#include "train/trainer/agreement.h"
#include "train/trainer/load_together.h"
#include "train/update/optimizer_state.h"
#include "train/whole/rank_step.h"

namespace trellis::train {

namespace fs = std::filesystem;

Resume::Resume(const JobConfig& config, ccl::Communicator& world, Job& job, const TrainingProvenance& origin,
               std::function<void(const std::string&)> say)
    : config_(config), world_(world), job_(job), origin_(origin), say_(std::move(say)) {}

// Training begins anew from a source without optimizer state, if weights_only is set, and where adapters are added to
// weights that were trained without them; the latter two do not apply to the run's own checkpoints.
bool Resume::anew(const CheckpointReader& source, bool own) const {
  if (!has_optimizer_state(source)) return true;
  return !own && (config_.experiment.weights_only || (config_.step.lora.rank > 0 && source.info().lora_alpha == 0));
}

void Resume::compare(const CheckpointReader& source, const fs::path& from, bool begins_anew) const {
  const TrainingProvenance& was = source.info().origin;
  std::string fault;
  if (world_.rank() == 0 && was.settings.empty()) {
    if (!source.info().files.empty())
      say_(fmt::format("{} does not say with which configuration it was trained: nothing was compared", from.string()));
  } else if (world_.rank() == 0) {
    const ResumeDifferences d = differences(was, config_, origin_.data, begins_anew);
    if (!d.said.empty()) say_(fmt::format("since {}: {}", from.string(), fmt::join(d.said, "; ")));
    if (was.version != origin_.version)
      say_(fmt::format("{} was saved by another build, {}; this is {}", from.string(), was.version, origin_.version));
    const std::string refused = fmt::format("{}", fmt::join(d.refused, "; "));
    if (!refused.empty() && config_.experiment.force)
      say_(fmt::format("--force overrides: {}", refused));
    else if (!refused.empty())
      fault = fmt::format("{} is of another run: {}; expected the same, or --force to resume all the same",
                          from.string(), refused);
  }
  refuse_together(world_, fault);
}

// Reports tensors that the model does not use, because it has fewer layers or other names.
void Resume::say_unused(const CheckpointReader& source, const fs::path& from) const {
  std::vector<std::string> names = source.names();
  std::erase_if(names, [](const std::string& name) { return name.find(':') != name.npos; });
  std::vector<std::int32_t> used(names.size(), 0);
  for (const OptimizerState& s : job_.step().states)
    if (const auto found = std::ranges::lower_bound(names, s.parameter->name);
        found != names.end() && *found == s.parameter->name)
      used[static_cast<std::size_t>(found - names.begin())] = 1;
  world_.all_reduce(used.data(), used.data(), used.size(), kernels::DType::i32, {kernels::Reduction::max});
  std::vector<std::string> unused;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (used[i] == 0) unused.push_back(names[i]);
  if (unused.empty() || world_.rank() != 0) return;
  const auto shown = std::min<std::size_t>(unused.size(), 3);
  say_(fmt::format("{} of {} tensors of {} have no place in the model: {}{}", unused.size(), names.size(),
                   from.string(), fmt::join(unused.begin(), unused.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                   shown < unused.size() ? ", ..." : ""));
}

std::string Resume::load(const fs::path& from, bool own, std::int64_t& step) {
  const auto begin = std::chrono::steady_clock::now();
  const auto [source, unreadable] = open_together(world_, from);
  if (!unreadable.empty()) return unreadable;
  const bool begins_anew = anew(*source, own);
  compare(*source, from, begins_anew);
  const auto [state, fault] = load_together(world_, job_, *source, !begins_anew);
  if (!fault.empty()) return fault;
  say_unused(*source, from);
  step = state ? source->info().step : 0;
  const std::string layout = source->info().layout.empty() ? "weights" : source->info().layout;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (world_.rank() == 0)
    say_(fmt::format("loaded {} ({}{}) in {:.2f} s{}", from.string(), layout,
                     layout == layout_words(job_.step()) || !state ? "" : ", now " + layout_words(job_.step()), seconds,
                     state ? "" : ": weights alone"));
  return "";
}

std::int64_t Resume::from(const fs::path& path) {
  std::int64_t step = 0;
  if (const std::string fault = load(path, false, step); !fault.empty()) throw std::invalid_argument(fault);
  return step;
}

std::int64_t Resume::from_newest(const fs::path& root) {
  // Every rank must try the same tags, so all take rank 0's list, which may just have removed one.
  const std::string names = from_first(world_, fmt::format("{}", fmt::join(complete_tags(root), " ")));
  std::vector<std::string> damaged;
  std::string newest_fault;
  for (std::size_t end = names.size(); end > 0;) {
    const std::size_t space = names.rfind(' ', end - 1), begin = space == names.npos ? 0 : space + 1;
    const std::string tag = names.substr(begin, end - begin);
    end = space == names.npos ? 0 : space;
    std::int64_t step = 0;
    const std::string fault = load(root / tag, true, step);
    if (fault.empty()) {
      refuse_together(world_, world_.rank() != 0 ? "" : fault_of([&] { set_aside(root, damaged); }));
      return step;
    }
    if (world_.rank() == 0) say_(fmt::format("{} is damaged and is left out: {}", (root / tag).string(), fault));
    if (damaged.empty()) newest_fault = fault;
    damaged.push_back(tag);
  }
  if (!damaged.empty()) text::refuse("{}: no checkpoint is whole; of the newest: {}", root.string(), newest_fault);
  return 0;
}

// Renames damaged tags, so that they do not count among the newest that are kept.
void Resume::set_aside(const fs::path& root, const std::vector<std::string>& tags) const {
  for (const std::string& tag : tags) {
    fs::path to = root / ("damaged_" + tag);
    for (int again = 1; fs::exists(to); ++again) to = root / fmt::format("damaged_{}_{}", tag, again);
    fs::rename(root / tag, to);
  }
}

}  // namespace trellis::train
