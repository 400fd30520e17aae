#include "train/whole/token_sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/types/fnv1a.h"
#include "kernels/types/random.h"
#include "text/refuse.h"

namespace trellis::train {

void SamplingOptions::check() const {
  if (!(temperature >= 0) || std::isinf(temperature))
    text::refuse("temperature is {}: expected a number, 0 or more", temperature);
  if (!(top_p > 0) || top_p > 1) text::refuse("top-p is {}: expected more than 0, to 1", top_p);
}

std::int32_t chosen_token(std::span<const float> logits, const SamplingOptions& s, std::uint64_t number) {
  const auto best = static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
  if (s.temperature == 0 || s.top_k == 1) return static_cast<std::int32_t>(best);
  std::vector<std::int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto logit = [&](std::int32_t token) { return static_cast<double>(logits[static_cast<std::size_t>(token)]); };
  std::ranges::stable_sort(tokens, [&](std::int32_t a, std::int32_t b) { return logit(a) > logit(b); });
  if (s.top_k > 0 && s.top_k < tokens.size()) tokens.resize(s.top_k);
  std::vector<double> sums;  // of the probabilities up to each token, not normalized
  for (double sum = 0; std::int32_t token : tokens)
    sums.push_back(sum += std::exp((logit(token) - logit(tokens[0])) / s.temperature));
  const double enough = s.top_p * sums.back();
  const auto last = static_cast<std::size_t>(std::ranges::lower_bound(sums, enough) - sums.begin());
  sums.resize(std::min(last + 1, sums.size()));
  const kernels::RandomKey key = kernels::random_key({.seed = s.seed, .step = 0, .tensor = kernels::fnv1a("sampled")});
  const double drawn = static_cast<double>(kernels::random_word(key, number) >> 11) * 0x1p-53 * sums.back();
  const auto at = static_cast<std::size_t>(std::ranges::upper_bound(sums, drawn) - sums.begin());
  return tokens[std::min(at, sums.size() - 1)];
}

}  // namespace trellis::train
