// A mixture of experts in place of a perceptron: a router sends each token to a few experts, SwiGLU perceptrons, and
// their results are added with the router's weights.
//
// Experts are shared out over the ranks of the expert axis, which divides the data-parallel ranks: tokens go to their
// experts and back by all_to_all. With a capacity an expert takes so many tokens of a rank's micro-batch, first come,
// first served, and sizes are fixed; without, all tokens are computed, and the ranks first tell each other how many
// they send (all_to_all_v): memory is laid out for the most that may come, and prices are those of even routing.
//
// Over the tensor axis each expert is cut as a perceptron is: gate and up by outputs, down by inputs. All of a tensor
// group's ranks route all tokens alike. Backward, everything is a part of a sum over the tensor axis, the router's
// gradient too.
#pragma once

#include <functional>

#include "train/layers/experts/expert_products.h"
#include "train/layers/experts/routing.h"
#include "train/layers/linear.h"

namespace trellis::train {

struct ExpertOptions {
  RoutingRule rule;
  std::size_t hidden = 0, inner = 0;
  std::size_t tokens = 0;      // of a micro-batch, that this rank has
  double capacity_factor = 0;  // an expert takes so many times its even share of tokens; 0: all that come
  double balance = 0;          // factor of each micro-batch's imbalance() in the loss
  bool bias = false;           // each expert has a bias, added to its score where experts are chosen
  double bias_rate = 0;        // by which the bias moves against the experts' load after each step
  bool mean_gradients = true;  // false: with ZeRO-1, gradients are sums over data-parallel ranks
  TensorId loss = no_tensor;   // to which the load-balancing loss is added
  LinearOptions linear;
  double output_deviation = 0.02;
  std::string router = "gate", experts = "experts";
  std::string names[3] = {"w1", "w3", "w2"};  // gate, up, down
};

class Experts {
 public:
  struct Saved {
    TensorId x = no_tensor, scores = no_tensor, chosen = no_tensor, weights = no_tensor, slots = no_tensor,
             counts = no_tensor, arriving = no_tensor;
    TensorId totals = no_tensor;  // counts of all ranks of the context axis, which have the micro-batch together
    TensorId rows = no_tensor, gate = no_tensor, up = no_tensor, inner = no_tensor, returned = no_tensor;
  };

  Experts(Writer&, Parameters&, const std::string& name, const ExpertOptions&);
  TensorId forward(Writer&, TensorId x, Saved&) const;
  TensorId backward(Writer&, TensorId dy, const Saved&) const;
  void update(Writer&) const;  // of the bias, once after the passes of a step

 private:
  bool limited() const { return capacity_ > 0; }
  DType narrow(DType type) const { return options_.linear.narrow ? DType::bf16 : type; }
  ExpertRows rows_of(TensorId arriving) const;
  TensorId sent_rows(Writer&, const std::string& name, DType) const;  // room for what this rank sends
  TensorId arrived_rows(Writer&, const std::string& name, DType, std::size_t columns) const;
  std::vector<TensorId> factors(Writer&, const std::vector<const Parameter*>&) const;
  void choose(Writer&, TensorId logits, Saved&) const;
  void add_balance(Writer&, const Saved&) const;
  TensorId exchanged(Writer&, const char* name, TensorId from, bool there, const Saved&) const;
  TensorId combined(Writer&, const Saved&, DType) const;
  std::pair<TensorId, TensorId> split_gradient(Writer&, TensorId dy, const Saved&) const;
  TensorId router_gradient(Writer&, TensorId dweights, const Saved&) const;
  void gathered_gradient(Writer&, TensorId from, TensorId dx, const Saved&) const;

  ExpertOptions options_;
  std::size_t ranks_, here_;  // ranks of the expert axis; experts of this rank
  std::size_t capacity_ = 0;  // rows of an expert from one rank; 0: no limit
  const Parameter* router_;
  const Parameter* bias_ = nullptr;
  TensorId load_ = no_tensor;  // tokens of each expert in the step
  std::vector<const Parameter*> gates_, ups_, downs_;
};

}  // namespace trellis::train
