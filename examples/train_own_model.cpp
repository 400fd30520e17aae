// Trains a model of one's own (own_model.cpp) on data of one's own, with checkpoints. Started again it goes on:
//
//   ./train_own_model 30; ./train_own_model 60
//   trellis launch -n 2 -- ./train_own_model 60      two tensor-parallel ranks, which may go on with one rank's run
#include <trellis/train.h>

#include <iostream>

using namespace trellis::train;

// Sequences that follow a rule: each token is 5 times the one before plus 3, modulo 32.
struct Rows : DataSource {
  std::uint64_t samples() const override { return 32; }
  void read(std::uint64_t number, const TokenSample& out) const override {
    auto token = static_cast<std::int32_t>(number * 7 % 32);
    for (int i = 0; i < 16; ++i) out.tokens[i] = token, out.labels[i] = token = (token * 5 + 3) % 32;
  }
};

struct Shown : Callback {
  void on_train_batch_end(TrainState& state, const StepRecord& r) override {
    if (state.world.rank() == 0 && r.step % 10 == 0) std::cout << "step " << r.step << ": loss " << r.loss << std::endl;
  }
};

int main(int count, char** words) try {
  const auto world = trellis::Communicator::from_environment();
  JobConfig c;
  c.step.model = {.architecture = "perceptrons", .vocab_size = 32, .hidden_size = 32, .num_layers = 2};
  c.step.strategy.tensor = world->ranks() % 2 == 0 ? 2 : 1;
  c.step.optimizer.learning_rate = 1e-2, c.step.strategy.zero1 = true;
  c.step.name = "own", c.step.seq_length = 16, c.step.global_batch_size = 4;
  c.trainer.max_steps = count > 1 ? std::stoll(words[1]) : 60;
  c.experiment.directory = "runs", c.experiment.resume = true, c.experiment.every_n_train_steps = 10;

  Trainer trainer(c, *world, {.callbacks = {std::make_shared<Shown>()}, .train_data = std::make_shared<Rows>()});
  trainer.fit();
  world->finalize();
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
