// A model of one's own: residual layers of a norm and a two-layer perceptron, trained on tokens that follow a rule.
//
//   ./train_own_model
//   trellis launch -n 4 -- ./train_own_model      two tensor-parallel ranks, twice
#include <exception>
#include <iostream>
#include <map>
#include <vector>

#include "ccl/communicator.h"
#include "ccl/rendezvous/environment.h"
#include "train/layers/arithmetic.h"
#include "train/layers/mlp.h"
#include "train/layers/norm.h"
#include "train/models/ends.h"
#include "train/whole/job.h"

namespace {

using namespace trellis::train;
namespace ccl = trellis::ccl;

// x + mlp(norm(x)). What the backward pass needs is kept by micro-batch.
class Layer : public Block {
 public:
  Layer(const BlockContext& b, const std::string& name)
      : norm_(b.writer, b.parameters, Norm::Kind::rms, name + ".norm", b.config.model.hidden_size, 1e-5F,
              b.scattered()),
        mlp_(b.writer, b.parameters, name,
             {.hidden = b.config.model.hidden_size,
              .inner = b.config.model.inner(),
              .linear = {.sequence = b.scattered()}}) {}

  TensorId forward(Writer& w, TensorId x, std::size_t micro) override {
    Kept& k = kept_[micro];
    return added(w, "residual", x, mlp_.forward(w, norm_.forward(w, x, k.norm), k.mlp));
  }
  TensorId backward(Writer& w, TensorId dy, std::size_t micro) override {
    const Kept& k = kept_.at(micro);
    return added(w, "residual", dy, norm_.backward(w, mlp_.backward(w, dy, k.mlp), k.norm));
  }

 private:
  struct Kept {
    Norm::Saved norm;
    Mlp::Saved mlp;
  };
  Norm norm_;
  Mlp mlp_;
  std::map<std::size_t, Kept> kept_;
};

const RegisteredModel mine({
    .name = "perceptrons",
    .embedding = [](const BlockContext& b) { return std::make_unique<EmbeddingBlock>(b, "embedding"); },
    .head = [](const BlockContext& b) { return std::make_unique<HeadBlock>(b, Norm::Kind::rms, "norm", "head"); },
    .layer = [](const BlockContext& b,
                std::size_t i) { return std::make_unique<Layer>(b, "layers." + std::to_string(i)); },
});

}  // namespace

int main() try {
  const ccl::Launched launched = ccl::launched_from_environment();
  const ccl::Config settings = ccl::config_from_environment();
  const auto store = ccl::store_from_environment(launched, ccl::Clock::now() + settings.timeout);
  const auto world = ccl::Communicator::create(store, launched.rank, launched.ranks, settings);

  Config config;
  config.model = {.architecture = "perceptrons", .vocab_size = 32, .hidden_size = 32, .num_layers = 2};
  config.strategy.tensor = launched.ranks % 2 == 0 ? 2 : 1;
  config.strategy.zero1 = true;
  config.seq_length = 16, config.global_batch_size = 4;

  Job job(config, *world);
  double first = 0, last = 0;
  for (int step = 1; step <= 60; ++step) {
    for (std::size_t m = 0; m < job.step().micro_batches; ++m) {
      std::vector<std::int32_t> tokens{static_cast<std::int32_t>((step * 7 + static_cast<int>(m)) % 32)};
      for (int i = 0; i < 16; ++i) tokens.push_back((tokens.back() * 5 + 3) % 32);
      job.set_batch(m, {tokens.data(), tokens.data() + 1});
    }
    last = job.run({.step = step, .learning_rate = 1e-2}).loss;
    if (step == 1) first = last;
  }
  if (launched.rank == 0) std::cout << "loss " << first << " at first, " << last << " after 60 steps" << std::endl;
  world->finalize();
  return last < 0.2 * first ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
