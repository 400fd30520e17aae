// What a model is, and its experts where it has any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::train {

// How rotary positions reach beyond those of training, as in Hugging Face's config.json. linear: all frequencies are
// divided by the factor. llama3, yarn: low frequencies are divided, high ones not, those between mixed. dynamic: a
// larger base for sequences longer than max_position_embeddings. longrope: each frequency has two factors, one for
// sequences longer than the original positions and one for others. yarn and longrope also scale the rotated elements.
struct RopeScaling {
  std::string type = "default";  // default, linear, dynamic, llama3, yarn, longrope
  double factor = 1;
  double low_frequency = 1, high_frequency = 4;  // of llama3: turns within the original positions
  std::size_t original_positions = 0;    // llama3, yarn, longrope; 0: 8192 for llama3, max_position_embeddings for yarn
  double beta_fast = 32, beta_slow = 1;  // of yarn: turns within the original positions
  double attention_factor = 0;           // yarn, longrope: factor that scales q and k; 0: it follows from other fields
  double mscale = 0, mscale_all_dim = 0;  // yarn: they decide attention_factor if that is 0
  bool truncate = true;                   // yarn: the pairs where mixing begins and ends are rounded to whole numbers
  std::vector<double> short_factors = {}, long_factors = {};  // longrope: a factor of each rotated pair
};

struct ModelConfig {
  std::string architecture = "llama";  // a name of models()
  std::size_t vocab_size = 256;
  std::size_t hidden_size = 64;
  std::size_t num_layers = 2;
  std::size_t num_attention_heads = 4;
  std::size_t num_key_value_heads = 0;  // 0: as many as heads
  std::size_t intermediate_size = 0;    // 0: 4 x hidden
  std::size_t max_position_embeddings = 2048;
  double norm_epsilon = 1e-5;
  double rope_theta = 10000;
  double rotary_percentage = 1;  // of a head's elements
  double initializer_range = 0.02;
  double hidden_dropout = 0, attention_dropout = 0;
  double label_smoothing = 0;
  bool tie_word_embeddings = false;
  std::size_t head_dim = 0;  // 0: hidden / heads
  RopeScaling rope_scaling = {};
  std::size_t sliding_window = 0;  // positions that attention sees, its own too; 0: all before
  bool qkv_bias = false;           // of llama: biases of queries, keys and values alone
  bool qk_norm = false;            // of llama: a norm of each head's queries and keys
  bool parallel_residual = true;   // of gpt_neox: attention and perceptron in parallel, not one after the other

  std::size_t kv_heads() const { return num_key_value_heads == 0 ? num_attention_heads : num_key_value_heads; }
  std::size_t inner() const { return intermediate_size == 0 ? 4 * hidden_size : intermediate_size; }
  std::size_t head_size() const { return head_dim == 0 ? hidden_size / num_attention_heads : head_dim; }
  std::size_t turned() const {  // how many of a head's elements rotary positions turn
    return static_cast<std::size_t>(static_cast<double>(head_size()) * rotary_percentage) / 2 * 2;
  }
};

// How a token's logits become scores. softmax: over all experts. sigmoid: each by itself.
enum class RouterScore : std::uint8_t { softmax, sigmoid };
std::string_view name(RouterScore);

// The fields are those of NxD Training's model.moe.
struct ExpertsConfig {
  std::size_t experts = 0;      // of a layer; 0: the model has none
  std::size_t top_k = 2;        // experts that each token goes to
  std::size_t inner = 0;        // of an expert's perceptron; 0: the model's intermediate_size
  std::size_t frequency = 1;    // layers 0, frequency, ... have experts, the others a perceptron
  std::size_t first_layer = 0;  // layers before it have a perceptron
  std::size_t shared = 0;       // shared experts, for every token: one perceptron as wide as all of them together
  double capacity_factor = 0;   // an expert takes so many times its even share of a micro-batch's tokens; 0: all
  bool dropless = false;        // whatever the factor is, all tokens are taken
  RouterScore score = RouterScore::softmax;
  bool normalize = true;                   // the weights of a token's experts are divided by their sum
  double scale = 1;                        // of all weights
  std::size_t groups = 1, top_groups = 1;  // groups of experts, and how many groups a token's experts may come from
  bool balanced = true;                    // output_router_logits: the load-balancing loss is a part of the loss
  double balance = 0;                      // router_aux_loss_coef
  bool bias = false;         // experts are chosen by score + bias; the bias moves against an expert's load
  double bias_rate = 0.001;  // by which a bias moves after each step

  bool layer_has(std::size_t layer) const { return experts > 0 && layer >= first_layer && layer % frequency == 0; }
  double capacity() const { return dropless ? 0 : capacity_factor; }
};

}  // namespace trellis::train
