#include "train/layers/experts/routing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace trellis::train {
namespace {

constexpr double none = -std::numeric_limits<double>::infinity();

void scores_of(RouterScore score, std::size_t n, const float* logits, float* scores) {
  if (score == RouterScore::sigmoid) {
    for (std::size_t i = 0; i < n; ++i)
      scores[i] = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logits[i]))));
    return;
  }
  const double largest = static_cast<double>(*std::max_element(logits, logits + n));
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(logits[i]) - largest);
  for (std::size_t i = 0; i < n; ++i)
    scores[i] = static_cast<float>(std::exp(static_cast<double>(logits[i]) - largest) / sum);
}

// Excludes all experts but those of the best groups.
void keep_groups(const RoutingRule& rule, std::vector<double>& ranked) {
  if (rule.top_groups >= rule.groups) return;
  const std::size_t each = rule.experts / rule.groups;
  std::vector<double> sums(rule.groups);
  for (std::size_t g = 0; g < rule.groups; ++g) {
    std::vector<double> of(ranked.begin() + static_cast<std::ptrdiff_t>(g * each),
                           ranked.begin() + static_cast<std::ptrdiff_t>((g + 1) * each));
    std::ranges::sort(of, std::greater<>());
    sums[g] = of[0] + (each > 1 ? of[1] : 0);
  }
  std::vector<std::size_t> order(rule.groups);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return sums[a] > sums[b]; });
  for (std::size_t i = rule.top_groups; i < rule.groups; ++i)
    std::fill_n(ranked.begin() + static_cast<std::ptrdiff_t>(order[i] * each), each, none);
}

double sum_of(const RoutingRule& rule, const float* scores, const std::int32_t* chosen) {
  double sum = 0;
  for (std::size_t k = 0; k < rule.top_k; ++k) sum += static_cast<double>(scores[chosen[k]]);
  return sum;
}

}  // namespace

void route(const RoutingRule& rule, std::size_t tokens, const float* logits, const float* bias, float* scores,
           std::int32_t* chosen, float* weights) {
  const std::size_t n = rule.experts;
  std::vector<double> ranked(n);
  std::vector<bool> taken(n);
  for (std::size_t t = 0; t < tokens; ++t, logits += n, scores += n, chosen += rule.top_k, weights += rule.top_k) {
    scores_of(rule.score, n, logits, scores);
    for (std::size_t i = 0; i < n; ++i)
      ranked[i] = static_cast<double>(scores[i]) + (bias == nullptr ? 0 : static_cast<double>(bias[i]));
    keep_groups(rule, ranked);
    taken.assign(n, false);
    for (std::size_t k = 0; k < rule.top_k; ++k) {
      std::size_t best = n;  // takes an expert that is not taken yet, even if scores are NaN
      for (std::size_t i = 0; i < n; ++i)
        if (!taken[i] && (best == n || ranked[i] > ranked[best])) best = i;
      taken[best] = true;
      chosen[k] = static_cast<std::int32_t>(best);
    }
    const double sum = rule.normalize ? sum_of(rule, scores, chosen) : 1;
    for (std::size_t k = 0; k < rule.top_k; ++k)
      weights[k] = static_cast<float>(rule.scale * static_cast<double>(scores[chosen[k]]) / sum);
  }
}

void route_gradient(const RoutingRule& rule, std::size_t tokens, const float* scores, const std::int32_t* chosen,
                    const float* dweights, const double* balance, float* dlogits) {
  const std::size_t n = rule.experts;
  std::vector<double> d(n);
  for (std::size_t t = 0; t < tokens; ++t, scores += n, chosen += rule.top_k, dweights += rule.top_k, dlogits += n) {
    std::ranges::fill(d, 0);
    if (balance != nullptr) {  // the load-balancing loss counts scores divided by their sum, which is 1 for softmax
      double sum = 0, mean = 0;
      for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(scores[i]);
      for (std::size_t i = 0; i < n; ++i) mean += balance[i] * static_cast<double>(scores[i]) / sum;
      for (std::size_t i = 0; i < n; ++i) d[i] = (balance[i] - mean) / sum;
    }
    const double sum = rule.normalize ? sum_of(rule, scores, chosen) : 1;
    double mean = 0;
    if (rule.normalize)
      for (std::size_t k = 0; k < rule.top_k; ++k)
        mean += static_cast<double>(dweights[k]) * static_cast<double>(scores[chosen[k]]) / sum;
    for (std::size_t k = 0; k < rule.top_k; ++k)
      d[static_cast<std::size_t>(chosen[k])] += rule.scale * (static_cast<double>(dweights[k]) - mean) / sum;
    double dot = 0;
    if (rule.score == RouterScore::softmax)
      for (std::size_t i = 0; i < n; ++i) dot += d[i] * static_cast<double>(scores[i]);
    for (std::size_t i = 0; i < n; ++i) {
      const auto s = static_cast<double>(scores[i]);
      dlogits[i] = static_cast<float>(rule.score == RouterScore::softmax ? s * (d[i] - dot) : d[i] * s * (1 - s));
    }
  }
}

void count_chosen(const RoutingRule& rule, std::size_t tokens, const std::int32_t* chosen, std::int32_t* counts) {
  std::fill_n(counts, rule.experts, 0);
  for (std::size_t i = 0; i < tokens * rule.top_k; ++i) ++counts[chosen[i]];
}

double imbalance(const RoutingRule& rule, std::size_t tokens, const float* scores, const std::int32_t* counts) {
  std::vector<double> shares(rule.experts, 0);
  for (std::size_t t = 0; t < tokens; ++t, scores += rule.experts) {
    double sum = 0;
    for (std::size_t i = 0; i < rule.experts; ++i) sum += static_cast<double>(scores[i]);
    for (std::size_t i = 0; i < rule.experts; ++i) shares[i] += static_cast<double>(scores[i]) / sum;
  }
  double total = 0;
  for (std::size_t i = 0; i < rule.experts; ++i) total += counts[i] * shares[i];
  const auto n = static_cast<double>(tokens);
  return static_cast<double>(rule.experts) * total / n / n;
}

void slots_of(const RoutingRule& rule, const SlotRule& slot, std::size_t tokens, const std::int32_t* chosen,
              const std::int32_t* counts, std::int32_t* slots) {
  std::vector<std::size_t> first(rule.experts), taken(rule.experts, 0);
  std::size_t next = 0;
  for (std::size_t e = 0; e < rule.experts; ++e) {
    first[e] = slot.capacity > 0 ? slot.first(e, rule.experts) : next;
    next += static_cast<std::size_t>(counts[e]);
  }
  for (std::size_t i = 0; i < tokens * rule.top_k; ++i) {
    const auto e = static_cast<std::size_t>(chosen[i]);
    const bool fits = slot.capacity == 0 || taken[e] < slot.capacity;
    slots[i] = fits ? static_cast<std::int32_t>(first[e] + taken[e]++) : -1;
  }
}

}  // namespace trellis::train
