#include "train/whole/memory_replay.h"

#include <limits>

namespace trellis::train {
namespace {

constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();

}  // namespace

void MemoryReplay::find(const std::vector<TaskRange>& ranges, const std::vector<std::uint32_t>& repeated,
                        std::size_t more) {
  const std::size_t categories = graph_.categories.size(), tensors = of_.tensors.size();
  const auto lasting = [&](std::uint32_t t) { return graph_.categories[of_.tensors[t].category].lasting; };
  const auto change = [&](Amounts& to, std::uint32_t t, std::int64_t times) {
    const std::int64_t bytes = static_cast<std::int64_t>(graph_.bytes(of_.tensors[t])) * times;
    to[of_.tensors[t].category] += bytes, to.back() += bytes;
  };
  std::vector<std::uint32_t> first(tensors, never), last(tensors, 0);
  for (std::uint32_t i = 0; i < of_.tasks.size(); ++i)
    for (const auto* list : {&of_.tasks[i].reads, &of_.tasks[i].writes})
      for (std::uint32_t t : *list) {
        if (first[t] == never) first[t] = i;
        last[t] = i;
      }
  std::vector<std::vector<std::uint32_t>> born(of_.tasks.size()), dead(of_.tasks.size());
  now_.assign(categories + 1, 0);
  for (std::uint32_t t = 0; t < tensors; ++t) {
    if (lasting(t))
      change(now_, t, 1);
    else if (first[t] != never)
      born[first[t]].push_back(t), dead[last[t]].push_back(t);
  }
  for (const TaskRange& range : ranges) {
    Profile& p = profiles_.emplace_back();
    Amounts here(categories + 1, 0);
    p.most.assign(categories + 1, 0);
    for (std::uint32_t i = range.first; i < range.end; ++i) {
      for (std::uint32_t t : born[i]) change(here, t, 1);
      if (here.back() > p.most.back()) p.most = here, p.at = i - range.first;
      for (std::uint32_t t : dead[i]) change(here, t, -1);
    }
    p.after = here;
  }
  for (std::uint32_t t : repeated) change(now_, t, static_cast<std::int64_t>(more));
  peak_.bytes = static_cast<std::size_t>(now_.back());
  peak_.by_category.assign(now_.begin(), now_.end() - 1);
}

void MemoryReplay::pass(std::size_t range, std::uint32_t task) {
  const Profile& p = profiles_[range];
  if (now_.back() + p.most.back() > static_cast<std::int64_t>(peak_.bytes)) {
    peak_.bytes = static_cast<std::size_t>(now_.back() + p.most.back()), peak_.task = task;
    for (std::size_t k = 0; k < peak_.by_category.size(); ++k)
      peak_.by_category[k] = static_cast<std::size_t>(now_[k] + p.most[k]);
  }
  for (std::size_t k = 0; k < now_.size(); ++k) now_[k] += p.after[k];
}

}  // namespace trellis::train
