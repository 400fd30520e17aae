// Self-attention with grouped queries: q, k, v projections, rotary positions, the core, and the output projection.
// Communicates in the projections. Where there are more tensor ranks than heads of keys, several ranks hold copies of
// these: the gradients of k and v are then summed over the kv axis, so that the copies stay equal. With a context axis
// a rank has some of a sequence's positions, and the core communicates too (attention/context_attention.h).
#pragma once

#include <memory>
#include <string>

#include "train/config/config.h"
#include "train/layers/attention/kept_core.h"
#include "train/layers/linear.h"
#include "train/layers/norm.h"

namespace trellis::train {

struct HeadCounts {
  std::size_t heads = 1, kv_heads = 1;  // of all tensor ranks together
};

// How fast each pair of a head's elements turns with the position (rope.h).
struct Rope {
  std::size_t turned = 0;  // elements of a head; 0: none
  double theta = 10000;
  RopeScaling scaling = {};
  std::size_t positions = 2048;  // max_position_embeddings
};

struct AttentionOptions {
  std::size_t hidden = 0;
  HeadCounts heads;
  Wiring wiring = Wiring::plain;
  std::size_t head_size = 0;
  std::size_t sequence = 0, batch = 1;  // positions of the whole sequence
  bool causal = true;
  Rope rope = {};
  std::size_t window = 0;  // positions that a query sees, its own too; 0: all before
  bool qkv_bias = false;   // also where `linear` has no biases
  bool qk_norm = false;    // RMSNorm of each head of q and k, before they are turned
  float norm_epsilon = 1e-5F;
  LinearOptions linear;
  double output_deviation = 0.02;
  // Names of the four projections, appended to the layer's.
  const char* names[4] = {"q_proj", "k_proj", "v_proj", "o_proj"};
  double dropout = 0;  // of the probabilities
  std::uint64_t seed = 0;
  bool flash = false;           // on the accelerator; the core's price and memory there depend on it
  bool ring = true;             // keys and values travel around the context axis as a ring; false: they are gathered
  bool recompute_core = false;  // keep q, k and v, and recompute the core's output for the backward pass
  std::size_t cached = 0;       // positions of the key/value cache; StepInputs::step is the position of the run's first
                                // token; 0: no cache
};

class Attention {
 public:
  struct Saved {
    TensorId x = no_tensor, q = no_tensor, k = no_tensor, v = no_tensor, out = no_tensor;
    std::size_t number = 0;       // the micro-batch's number in the step, which decides what dropout drops
    TensorId starts = no_tensor;  // where attention is cut: the first position that each row sees
    Norm::Saved q_norm = {}, k_norm = {};
    KeptCore core = {};
  };

  Attention(Writer&, Parameters&, const std::string& name, const AttentionOptions&);
  TensorId forward(Writer&, TensorId x, Saved&) const;  // `number` and `starts` must be set in Saved
  TensorId backward(Writer&, TensorId dy, const Saved&) const;

 private:
  class Share;  // of this rank
  std::shared_ptr<const Share> share_;
};

}  // namespace trellis::train
