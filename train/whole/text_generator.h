// Text from a model: forward passes that keep the keys and values of all positions so far.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ccl/communicator.h"
#include "train/step/run.h"
#include "train/whole/job.h"
#include "train/whole/rank_step.h"
#include "train/whole/token_sampling.h"

namespace trellis::train {

class TextGenerator {
 public:
  // Every rank of the world makes one; they are the configuration's tensor x pipeline ranks. capacity: positions at
  // most, prompt and all. Throws invalid_argument for another number of ranks, or a model that has no next token.
  TextGenerator(const StepConfig&, ccl::Communicator& world, std::size_t capacity, int threads = 1);
  ~TextGenerator();

  // The step and the runner whose parameters are to be loaded.
  const RankStep& step() const;
  Runner& runner();

  // Appends tokens, at least one, to those fed before. Returns the logits of what follows, on ranks of the last stage;
  // on others nothing. Throws invalid_argument: no token, one that is no entry of the vocabulary, or more than
  // `capacity` in all.
  std::span<const float> feed(std::span<const std::int32_t> tokens);
  void restart() { length_ = 0; }
  std::size_t length() const { return length_; }  // of what was fed

  // Feeds the prompt and then each chosen token, until there are `count` tokens or one of `ends`, which is then the
  // last one. told: called with each token, on every rank.
  std::vector<std::int32_t> generate(std::span<const std::int32_t> prompt, std::size_t count, const SamplingOptions&,
                                     std::span<const std::int32_t> ends = {},
                                     const std::function<void(std::int32_t)>& told = {});

 private:
  struct Pass;
  void make(std::unique_ptr<Pass>&, std::size_t tokens);
  void run(Pass&, std::span<const std::int32_t> tokens);
  void expect_fitting(std::span<const std::int32_t> tokens) const;

  StepConfig config_;
  ccl::Communicator& world_;
  std::size_t capacity_;
  int threads_;
  std::unique_ptr<Pass> one_;   // for one token
  std::unique_ptr<Pass> many_;  // for a piece of the prompt, made when needed; shares the lasting memory of one_
  std::size_t length_ = 0;
};

}  // namespace trellis::train
