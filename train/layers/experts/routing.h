// Which experts a token goes to, and with which weights: plain functions on arrays, and their gradient.
#pragma once

#include <cstddef>
#include <cstdint>

#include "train/config/model_config.h"

namespace trellis::train {

struct RoutingRule {
  std::size_t experts = 1;
  std::size_t top_k = 1;
  RouterScore score = RouterScore::softmax;
  bool normalize = true;  // the weights of a token's experts are divided by their sum
  double scale = 1;       // of all weights
  // Experts form groups of equal size. A token's experts come from the `top_groups` best groups: those with the largest
  // sums of their two best experts' scores.
  std::size_t groups = 1, top_groups = 1;
};

// For each of `tokens`: scores of all experts, the best top_k in falling order, and their weights. `bias`: added to
// scores where experts are chosen, and not to weights; may be null. Of equal scores the first expert is chosen.
void route(const RoutingRule&, std::size_t tokens, const float* logits, const float* bias, float* scores,
           std::int32_t* chosen, float* weights);

// Computes dlogits from dweights, for the weights that route() made. balance: by expert, what is added to the gradient
// of its share of a token's scores; may be null.
void route_gradient(const RoutingRule&, std::size_t tokens, const float* scores, const std::int32_t* chosen,
                    const float* dweights, const double* balance, float* dlogits);

// How often each expert was chosen.
void count_chosen(const RoutingRule&, std::size_t tokens, const std::int32_t* chosen, std::int32_t* counts);

// The loss that keeps experts balanced: experts x sum over experts of (its tokens / tokens) x (its mean share of
// scores). It is top_k where all experts have the same load.
double imbalance(const RoutingRule&, std::size_t tokens, const float* scores, const std::int32_t* counts);

// How each choice gets its row among the rows that are sent. With a capacity, expert e's rows begin at first(e), and
// choices beyond `capacity` get no row (-1). Without one (0), rows follow each other, expert by expert.
struct SlotRule {
  std::size_t capacity = 0;
  std::size_t ranks = 1;  // among which experts are shared out; a rank's experts follow each other
  std::size_t first(std::size_t expert, std::size_t experts) const {  // each rank's first expert, then each second, ...
    const std::size_t each = experts / ranks;
    return (expert % each * ranks + expert / each) * capacity;
  }
};
void slots_of(const RoutingRule&, const SlotRule&, std::size_t tokens, const std::int32_t* chosen,
              const std::int32_t* counts, std::int32_t* slots);

}  // namespace trellis::train
