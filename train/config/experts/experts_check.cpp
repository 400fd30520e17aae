#include "train/config/experts/experts_check.h"

#include <fmt/format.h>

#include "text/refuse.h"

namespace trellis::train {
namespace {

template <class... T>
void expect(bool right, fmt::format_string<T...> format, T&&... values) {
  if (!right) text::refuse(format, std::forward<T>(values)...);
}

}  // namespace

std::string_view name(RouterScore s) { return s == RouterScore::softmax ? "softmax" : "sigmoid"; }

std::string routing_words(const StepConfig& c) {
  const ExpertsConfig& e = c.experts;
  if (e.experts == 0) return "";
  std::string words = fmt::format("{} experts, {} for a token", e.experts, e.top_k);
  if (c.strategy.expert > 1) words += fmt::format(", shared out over {} data-parallel ranks", c.strategy.expert);
  if (e.capacity() > 0)
    return words + fmt::format("; each takes {:g} times its even share, filled up, and drops the rest", e.capacity());
  return words + "; work and messages are those of even routing, memory that of the most that may come";
}

void check_experts(const StepConfig& c, Rank data) {
  const ExpertsConfig& e = c.experts;
  const Rank ranks = c.strategy.expert;
  if (e.experts == 0) {
    expect(ranks == 1,
           "distributed_strategy.expert_model_parallel_size is {}: expected 1, as model.moe.num_experts is 0", ranks);
    return;
  }
  expect(data % ranks == 0,
         "distributed_strategy.expert_model_parallel_size is {}: expected a divisor of the {} data-parallel ranks, "
         "which share out the experts",
         ranks, data);
  expect(e.experts % static_cast<std::size_t>(ranks) == 0,
         "model.moe.num_experts is {}: expected a multiple of expert_model_parallel_size {}", e.experts, ranks);
  expect(e.experts % e.groups == 0, "model.moe.n_group is {}: expected a divisor of num_experts {}", e.groups,
         e.experts);
  expect(e.top_groups <= e.groups, "model.moe.topk_group is {}: expected at most n_group {}", e.top_groups, e.groups);
  expect(e.top_k <= e.experts / e.groups * e.top_groups,
         "model.moe.top_k is {}: expected at most {}, the experts that a token may go to", e.top_k,
         e.experts / e.groups * e.top_groups);
  const std::size_t inner = e.inner == 0 ? c.model.inner() : e.inner;
  expect(inner % static_cast<std::size_t>(c.strategy.tensor) == 0,
         "model.moe.intermediate_size is {}: expected a multiple of tensor_model_parallel_size {}", inner,
         c.strategy.tensor);
}

}  // namespace trellis::train
