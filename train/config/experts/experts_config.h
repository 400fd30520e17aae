// What a model with experts is: the fields are those of NxD Training's model.moe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trellis::train {

// Of a token's logits. softmax: over all experts. sigmoid: each by itself.
enum class RouterScore : std::uint8_t { softmax, sigmoid };
std::string_view name(RouterScore);

struct ExpertsConfig {
  std::size_t experts = 0;      // of a layer; 0: the model has none
  std::size_t top_k = 2;        // that a token goes to
  std::size_t inner = 0;        // of an expert's perceptron; 0: the model's intermediate_size
  std::size_t frequency = 1;    // layers 0, frequency, ... have experts, the others a perceptron
  std::size_t first_layer = 0;  // layers before it have a perceptron
  std::size_t shared = 0;       // experts that every token goes to beside the chosen ones: one perceptron of their size
  double capacity_factor = 0;   // an expert takes so many times its even share of a micro-batch's tokens; 0: all
  bool dropless = false;        // whatever the factor is, all tokens are taken
  RouterScore score = RouterScore::softmax;
  bool normalize = true;                   // the weights of a token's experts are divided by their sum
  double scale = 1;                        // of all weights
  std::size_t groups = 1, top_groups = 1;  // of experts, and how many a token's experts may come from
  bool balanced = true;                    // output_router_logits: the balance is a part of the loss
  double balance = 0;                      // router_aux_loss_coef
  bool bias = false;         // each expert has a bias where experts are chosen, which moves against its load
  double bias_rate = 0.001;  // after each step

  bool layer_has(std::size_t layer) const { return experts > 0 && layer >= first_layer && layer % frequency == 0; }
  double capacity() const { return dropless ? 0 : capacity_factor; }
};

}  // namespace trellis::train
