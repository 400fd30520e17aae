#include "tests/train/ranks/runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>

#include "ccl/store.h"
#include "kernels/types/random.h"
#include "train/whole/rank_step.h"

namespace trellis::train {

StepConfig small_llama() {
  StepConfig c;
  c.model = {.vocab_size = 64,
             .hidden_size = 32,
             .num_layers = 4,
             .num_attention_heads = 4,
             .num_key_value_heads = 2,
             .intermediate_size = 48,
             .initializer_range = 0.1};
  c.seq_length = 16, c.micro_batch_size = 1, c.global_batch_size = 8;
  c.optimizer.weight_decay = 0.1;
  // Gradients that are zero but for rounding (of keys' biases) would otherwise become whole steps.
  c.optimizer.epsilon = 1e-3;
  return c;
}

std::string on_threads(Rank world, const std::function<void(ccl::Communicator&)>& body) {
  const auto store = ccl::memory_store();
  ccl::Config config;
  config.transport = "loopback";
  config.timeout = std::chrono::seconds(60);
  std::mutex mutex;
  std::string all;
  std::vector<std::thread> threads;
  for (Rank r = 0; r < world; ++r)
    threads.emplace_back([&, r] {
      try {
        body(*ccl::Communicator::create(store, r, world, config));
      } catch (const std::exception& e) {
        const std::lock_guard lock(mutex);
        all += "rank " + std::to_string(r) + ": " + e.what() + "\n";
      }
    });
  for (std::thread& t : threads) t.join();
  return all;
}

void expect_on_threads(Rank world, const std::function<void(ccl::Communicator&)>& body) {
  EXPECT_EQ(on_threads(world, body), "");
}

std::vector<std::int32_t> sample(const StepConfig& c, std::size_t step, std::size_t number) {
  const kernels::RandomKey key = kernels::random_key({.seed = 7, .step = step, .tensor = number});
  std::vector<std::int32_t> tokens(c.seq_length + 1);
  // Something to learn: mostly a token is a function of the one before.
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::uint32_t bits = kernels::random32(key, i);
    const auto size = static_cast<std::uint32_t>(c.model.vocab_size);
    tokens[i] = static_cast<std::int32_t>(
        i == 0 || bits % 8 == 0 ? bits / 8 % size : (static_cast<std::uint32_t>(tokens[i - 1]) * 5 + 3) % size);
  }
  return tokens;
}

void set_batches(Job& job, std::size_t step, std::int32_t ignored_every) {
  const RankStep& s = job.step();
  const std::size_t batch = s.config.micro_batch_size;
  for (std::size_t m = 0; m < s.micro_batches; ++m) {
    const std::size_t number =
        m * static_cast<std::size_t>(s.mesh.shape().data) + static_cast<std::size_t>(s.place.data);
    std::vector<std::int32_t> tokens, labels;
    for (std::size_t b = 0; b < batch; ++b) {
      const auto all = sample(s.config, step, number * batch + b);
      tokens.insert(tokens.end(), all.begin(), all.end() - 1);
      labels.insert(labels.end(), all.begin() + 1, all.end());
    }
    if (ignored_every > 0)
      for (std::size_t i = 0; i < labels.size(); i += static_cast<std::size_t>(ignored_every)) labels[i] = -100;
    std::vector<std::int32_t> types(tokens.size()), next(batch);
    for (std::size_t i = 0; i < types.size(); ++i) types[i] = i % s.config.seq_length < s.config.seq_length / 2 ? 0 : 1;
    for (std::size_t b = 0; b < batch; ++b) next[b] = tokens[b * s.config.seq_length] % 2;
    std::vector<std::int32_t> starts(tokens.size());  // documents of seven tokens
    for (std::size_t i = 0; i < starts.size(); ++i)
      starts[i] = static_cast<std::int32_t>(i % s.config.seq_length / 7 * 7);
    job.set_batch(m, {tokens.data(), labels.data(), types.data(), next.data(), starts.data()});
  }
}

namespace {

// Puts a rank's part into the whole parameter. Returns whether elements that another rank had put there are the same.
bool put(Tensors& all, Tensors& known, const Parameter& p, const std::vector<float>& part) {
  std::vector<float>& whole = all[p.name];
  std::vector<float>& seen = known[p.name];
  whole.resize(p.slice.rows * p.slice.columns), seen.resize(whole.size());
  bool same = true;
  for (std::size_t r = 0; r < p.slice.row_count; ++r)
    for (std::size_t c = 0; c < p.slice.column_count; ++c) {
      const std::size_t i = p.slice.index(r, c);
      const float v = part[r * p.slice.column_count + c];
      if (seen[i] != 0 && std::memcmp(&whole[i], &v, sizeof v) != 0) same = false;
      whole[i] = v, seen[i] = 1;
    }
  return same;
}

}  // namespace

Trained train_threads(const StepConfig& config, Rank world, const RunOptions& o) {
  Trained out;
  Tensors seen;
  std::mutex mutex;
  out.fault = on_threads(world, [&](ccl::Communicator& c) {
    Job job(config, c);
    for (std::size_t step = 0; step < o.steps; ++step) {
      set_batches(job, step, o.ignored_every);
      const Job::Result r = job.run({.step = static_cast<std::int64_t>(step + 1), .learning_rate = o.learning_rate});
      const std::lock_guard lock(mutex);
      if (c.rank() == 0) out.losses.push_back(r.loss), out.norms.push_back(r.norm);
    }
    const std::lock_guard lock(mutex);
    for (const Parameter& p : job.parameters().all())
      if (!put(out.parameters, seen, p, job.values(p))) out.differing = p.name;
  });
  return out;
}

std::pair<double, std::string> distance(const Tensors& a, const Tensors& b) {
  std::pair<double, std::string> worst{0, ""};
  for (const auto& [name, x] : a) {
    const auto found = b.find(name);
    if (found == b.end() || found->second.size() != x.size()) return {1e9, name};
    double apart = 0, size = 0.01;
    for (std::size_t i = 0; i < x.size(); ++i) {
      apart = std::max(apart, std::fabs(static_cast<double>(x[i]) - static_cast<double>(found->second[i])));
      size = std::max(size, std::fabs(static_cast<double>(x[i])));
    }
    if (!(apart <= worst.first * size)) worst = {apart / size, name};
  }
  return worst;
}

}  // namespace trellis::train
