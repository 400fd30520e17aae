#include "train/step/memory_plan.h"

#include <algorithm>
#include <map>

namespace trellis::train {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t never = ~std::size_t{0};
std::size_t rounded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// The gaps in memory. The memory grows at its end.
class Gaps {
 public:
  explicit Gaps(std::size_t end) : end_(end) {}
  std::size_t end() const { return end_; }

  std::size_t take(std::size_t bytes) {
    auto best = free_.end();
    for (auto gap = free_.begin(); gap != free_.end(); ++gap)
      if (gap->second >= bytes && (best == free_.end() || gap->second < best->second)) best = gap;
    if (best == free_.end()) {
      // No gap is large enough: the memory grows, from the beginning of the last gap if that reaches the end.
      std::size_t at = end_;
      if (!free_.empty() && std::prev(free_.end())->first + std::prev(free_.end())->second == end_) {
        at = std::prev(free_.end())->first;
        free_.erase(std::prev(free_.end()));
      }
      end_ = at + bytes;
      return at;
    }
    const auto [at, size] = *best;
    free_.erase(best);
    if (size > bytes) free_[at + bytes] = size - bytes;
    return at;
  }

  void give(std::size_t at, std::size_t bytes) {
    auto next = free_.lower_bound(at);
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == at) {
        at = before->first, bytes += before->second;
        free_.erase(before);
      }
    }
    if (next != free_.end() && at + bytes == next->first) {
      bytes += next->second;
      free_.erase(next);
    }
    free_[at] = bytes;
  }

 private:
  std::map<std::size_t, std::size_t> free_;
  std::size_t end_;
};

// Whether a tensor has a place here from its first operation to its last.
bool has_life(Category c) { return !lasting(c) && c != Category::accelerator; }

struct Life {
  std::size_t first = never, last = 0;
};

std::vector<Life> lives(const StepProgram& p) {
  std::vector<Life> lives(p.tensors.size());
  for (std::size_t i = 0; i < p.operations.size(); ++i)
    for (const auto* list : {&p.operations[i].reads, &p.operations[i].writes})
      for (TensorId t : *list) {
        Life& life = lives[static_cast<std::size_t>(t)];
        life.first = std::min(life.first, i), life.last = i;
      }
  return lives;
}

}  // namespace

MemoryPlan plan_memory(const StepProgram& p, ParameterStorage lasting_ones) {
  MemoryPlan plan;
  plan.offsets.assign(p.tensors.size(), 0);
  for (std::size_t t = 0; t < p.tensors.size(); ++t)
    if (lasting(p.tensors[t].category) &&
        (lasting_ones == ParameterStorage::here || p.tensors[t].category != Category::parameter)) {
      plan.offsets[t] = plan.bytes;
      plan.bytes += rounded(p.tensors[t].bytes());
    }
  const std::vector<Life> life = lives(p);
  Gaps gaps(plan.bytes);
  for (std::size_t i = 0; i < p.operations.size(); ++i) {
    const auto each = [&](const auto& body) {
      for (const auto* list : {&p.operations[i].reads, &p.operations[i].writes})
        for (TensorId id : *list)
          if (const auto t = static_cast<std::size_t>(id); has_life(p.tensors[t].category)) body(t);
    };
    std::vector<std::size_t> born, dead;
    each([&](std::size_t t) {
      if (life[t].first == i && std::ranges::find(born, t) == born.end()) born.push_back(t);
      if (life[t].last == i && std::ranges::find(dead, t) == dead.end()) dead.push_back(t);
    });
    for (std::size_t t : born) plan.offsets[t] = gaps.take(rounded(p.tensors[t].bytes()));
    for (std::size_t t : dead) gaps.give(plan.offsets[t], rounded(p.tensors[t].bytes()));
  }
  plan.bytes = gaps.end();
  return plan;
}

}  // namespace trellis::train
