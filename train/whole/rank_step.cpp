#include "train/whole/rank_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "text/refuse.h"
#include "train/layers/arithmetic.h"
#include "train/models/model_interface.h"
#include "train/update/gradient_exchange.h"
#include "train/update/optimizer_step.h"

namespace trellis::train {
namespace {

ParameterTypes types_of(const StepConfig& c, StepPurpose purpose) {
  const bool wide = c.precision == Precision::fp32 || casts(c.precision);
  const DType value = wide ? DType::f32 : DType::bf16;
  return {.value = value,
          .gradient = c.optimizer.fp32_gradients ? DType::f32 : value,
          .zero = c.strategy.zero1,
          .adapters_alone = c.lora.rank > 0,
          .none_trained = purpose != StepPurpose::train};
}

bool is_forward(Action a) { return a == Action::forward || a == Action::send_forward || a == Action::receive_forward; }
bool is_send(Action a) { return a == Action::send_forward || a == Action::send_backward; }

// What belongs to one stage of this rank while its passes are written. Maps are by micro-batch.
struct Chunk {
  std::int32_t stage = 0;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<std::vector<const Parameter*>> owned;  // by block: whose gradients are complete with its last pass
  std::map<std::int32_t, TensorId> in, out, gradient_in, gradient_out;
  std::map<std::int32_t, std::vector<std::vector<std::function<void(Writer&)>>>> weights;
  std::int32_t complete = 0;  // micro-batches whose gradients are all added
};

TensorId taken(std::map<std::int32_t, TensorId>& from, std::int32_t micro) {
  const auto found = from.find(micro);
  if (found == from.end())
    throw std::logic_error(fmt::format("the pipeline schedule has nothing for micro-batch {}", micro));
  const TensorId t = found->second;
  from.erase(found);
  return t;
}

class LayingOut {
 public:
  LayingOut(const StepConfig& config, Rank world, Rank rank, StepPurpose purpose, std::size_t cached,
            const PipelineSchedule* order)
      : purpose_(purpose),
        cached_(cached),
        derived_(derive(config, world)),
        schedule_(order != nullptr ? *order : schedule_of(config, derived_)),
        mesh_(derived_.mesh, config.wiring),
        place_(mesh_.place(rank)),
        writer_(derived_.mesh, place_),
        step_{.config = config,
              .mesh = mesh_,
              .place = place_,
              .parameters = Parameters(types_of(config, purpose)),
              .kv_copies = derived_.kv_copies,
              .micro_batches = derived_.micro_batches} {}

  RankStep run() {
    make_inputs();
    make_blocks();
    if (purpose_ == StepPurpose::generate) {
      pass_forward();
      step_.program = writer_.finish();
      return std::move(step_);
    }
    if (purpose_ == StepPurpose::train) {
      step_.states = make_states(writer_, step_.parameters, step_.config);
      gathered_ = parameter_buckets(writer_, step_.config, step_.states, block_ends_);
    }
    zero_sums();
    if (purpose_ == StepPurpose::train)
      pass();
    else
      pass_forward();
    step_.model_flops = writer_.model_flops();
    average_loss();
    if (purpose_ == StepPurpose::train) {
      update_blocks();
      if (step_.config.optimizer.clip) step_.norm = writer_.tensor("norm", DType::f64, 1, 1, Category::input);
      write_update(writer_, step_.config, step_.states, step_.norm, gathered_);
    }
    step_.program = writer_.finish();
    check_cut();
    check_context();
    return std::move(step_);
  }

 private:
  bool is_last(std::int32_t stage) const { return stage + 1 == schedule_.shape.stages(); }
  bool has_stage(std::int32_t stage) const { return schedule_.rank_of(stage) == place_.pipeline; }
  Chunk& chunk_with(std::int32_t stage) { return chunks_[static_cast<std::size_t>(schedule_.chunk_of(stage))]; }

  void make_inputs() {
    const std::size_t rows = step_.config.positions_here() * step_.config.micro_batch_size;
    const auto input = [&](const char* what, std::size_t m, std::size_t size) {
      return writer_.tensor(fmt::format("{}.{}", what, m), DType::i32, size, 1, Category::input);
    };
    const bool pairs = model_named(step_.config.model.architecture).pairs;
    if (purpose_ == StepPurpose::generate) return make_inputs_of_generation(pairs, rows);
    for (std::size_t m = 0; m < derived_.micro_batches; ++m) {
      if (has_stage(0)) step_.tokens.push_back(input("tokens", m, rows));
      if (has_stage(0) && pairs) step_.types.push_back(input("types", m, rows));
      if (step_.config.cut_attention) step_.starts.push_back(input("starts", m, rows));
      if (!has_stage(schedule_.shape.stages() - 1)) continue;
      step_.labels.push_back(input("labels", m, rows));
      if (mesh_.shape().context > 1) step_.counted.push_back(input("counted", m, 1));
      if (pairs) step_.next.push_back(input("next", m, step_.config.micro_batch_size));
    }
    step_.loss = writer_.tensor("loss", DType::f64, 1, 1, Category::input);
  }

  void make_inputs_of_generation(bool pairs, std::size_t rows) {
    if (pairs)
      text::refuse("model.architecture is {}: expected a model that predicts the next token",
                   step_.config.model.architecture);
    if (has_stage(0)) step_.tokens.push_back(writer_.tensor("tokens", DType::i32, rows, 1, Category::input));
    if (has_stage(schedule_.shape.stages() - 1))
      step_.logits = writer_.tensor("logits", DType::f32, step_.config.micro_batch_size, step_.config.model.vocab_size,
                                    Category::input);
  }

  void make_blocks() {
    const Model& model = model_named(step_.config.model.architecture);
    const BlockContext context{step_.config,           writer_,      step_.parameters, step_.labels, step_.loss,
                               derived_.micro_batches, step_.types,  step_.next,       cached_,      step_.logits,
                               has_stage(0),           step_.starts, step_.counted};
    check_experts(model);
    const bool tied = step_.config.model.tie_word_embeddings;
    step_.tied = tied && schedule_.rank_of(0) != schedule_.rank_of(schedule_.shape.stages() - 1);
    for (std::int32_t c = 0; c < schedule_.shape.chunks; ++c) {
      Chunk& chunk = chunks_.emplace_back();
      chunk.stage = schedule_.stage_of(place_.pipeline, c);
      const auto add = [&](std::unique_ptr<Block> block) {
        chunk.blocks.push_back(std::move(block));
        auto& owned = chunk.owned.emplace_back();
        const auto& all = step_.parameters.all();
        for (; known_ < all.size(); ++known_) owned.push_back(&all[known_]);
        block_ends_.push_back(known_);
      };
      if (chunk.stage == 0) add(model.embedding(context));
      for (std::size_t layer = 0; layer < derived_.stage_of_layer.size(); ++layer)
        if (derived_.stage_of_layer[layer] == static_cast<std::size_t>(chunk.stage)) add(model.layer(context, layer));
      if (is_last(chunk.stage)) add(model.head(context));
    }
    if (tied) shared_ = step_.parameters.find(model.tied);
    if (step_.config.lora.rank > 0) check_adapters();
  }

  void check_experts(const Model& model) const {
    const std::size_t experts = step_.config.experts.experts;
    if (model.experts != (experts > 0))
      text::refuse("model.moe.num_experts is {}: expected {} for architecture {}", experts,
                   model.experts ? "1 or more" : "0", model.name);
  }

  // Checks that each target names a projection. Every stage has whole layers, so it knows all projections.
  void check_adapters() const {
    constexpr const char* key = "model_alignment_strategy.peft.target_modules";
    const LoraConfig& lora = step_.config.lora;
    const auto& there = step_.parameters.projections();
    const std::string expected = fmt::format("expected some of {}, the projections of {}", fmt::join(there, ", "),
                                             step_.config.model.architecture);
    if (lora.targets.empty()) text::refuse("{} is empty: {}", key, expected);
    for (const std::string& target : lora.targets)
      if (std::ranges::find(there, target) == there.end()) text::refuse("{} has '{}': {}", key, target, expected);
  }

  // A model that is registered from outside may not support cut attention.
  void check_cut() const {
    const auto reads = [&](const Operation& o) { return std::ranges::find(o.reads, step_.starts[0]) != o.reads.end(); };
    if (!step_.starts.empty() && std::ranges::none_of(step_.program.operations, reads))
      text::refuse("data.reset_attention_mask is true: expected a model with causal attention, not {}",
                   step_.config.model.architecture);
  }

  // A model registered from outside may not support a context axis; models whose loss is no mean over positions don't.
  void check_context() const {
    if (mesh_.shape().context == 1) return;
    const auto exchanges = [](const Operation& o) {
      return o.kind == Operation::Kind::exchange && o.exchange.axis == Axis::context;
    };
    const std::string& name = step_.config.model.architecture;
    if (model_named(name).pairs || std::ranges::none_of(step_.program.operations, exchanges))
      text::refuse(
          "distributed_strategy.context_parallel_size is {}: expected 1 for {}; models of next tokens with "
          "the library's attention may have more",
          mesh_.shape().context, name);
  }

  void zero_sums() {
    const Writer::Scope scope(writer_, "begin");
    const Writer::For what(writer_, Phase::update);
    zero(writer_, "loss", step_.loss);
    for (const Parameter& p : step_.parameters.all())
      if (!p.frozen && !p.overwritten) zero(writer_, p.name, p.gradient);
  }

  void pass() {
    GradientExchange gradients(step_.config, step_.states);
    for (const Slot& slot : schedule_.ranks[static_cast<std::size_t>(place_.pipeline)]) {
      const double before = writer_.flops();
      const std::size_t first = writer_.operations();
      const char word = slot.action == Action::weight ? 'w' : is_forward(slot.action) ? 'f' : 'b';
      const Writer::Scope scope(writer_, fmt::format("{}{}", word, slot.micro));
      const Writer::For what(writer_, word == 'f' ? Phase::forward : Phase::backward);
      Chunk& chunk = chunks_[static_cast<std::size_t>(slot.chunk)];
      switch (slot.action) {
        case Action::forward:
          forward(chunk, slot.micro);
          break;
        case Action::backward:
          backward(chunk, slot.micro, gradients);
          break;
        case Action::weight:
          weights(chunk, slot.micro, gradients);
          break;
        default:
          message(chunk, slot);
      }
      step_.slots.push_back({slot, first, writer_.operations()});
      if (computes(slot.action) && slot.micro == 0) note_cost(slot, writer_.flops() - before);
    }
    std::vector<const Parameter*> tied;
    if (step_.tied && shared_ != nullptr) tied.push_back(shared_);
    gradients.finish(writer_, tied);
  }

  void update_blocks() {
    const Writer::Scope scope(writer_, "balance");
    const Writer::For what(writer_, Phase::update);
    for (const Chunk& chunk : chunks_)
      for (const auto& block : chunk.blocks) block->update(writer_);
  }

  void note_cost(const Slot& slot, double flops) {
    step_.costs.resize(chunks_.size(), {0, 0, 0});
    StageCosts& c = step_.costs[static_cast<std::size_t>(slot.chunk)];
    (slot.action == Action::forward    ? c.forward
     : slot.action == Action::backward ? c.backward
                                       : c.weight) = std::llround(flops);
  }

  // One micro-batch after the other goes through all stages, so that ranks cannot wait in a circle.
  void pass_forward() {
    for (std::int32_t m = 0; m < schedule_.shape.micro_batches; ++m)
      for (std::int32_t c = 0; c < schedule_.shape.chunks; ++c) {
        const Writer::Scope scope(writer_, fmt::format("f{}", m));
        Chunk& chunk = chunks_[static_cast<std::size_t>(c)];
        if (chunk.stage > 0 && !has_stage(chunk.stage - 1))
          message(chunk, {.action = Action::receive_forward, .micro = m, .chunk = c});
        forward(chunk, m);
        if (!is_last(chunk.stage) && !has_stage(chunk.stage + 1))
          message(chunk, {.action = Action::send_forward, .micro = m, .chunk = c});
      }
  }

  // Waits for those of the block's parameters that the step before gathers while this one runs.
  void wait_for(const std::vector<const Parameter*>& owned) {
    for (const AllGatherBucket& bucket : gathered_) {
      const auto owns = [&](std::size_t i) {
        return std::ranges::find(owned, step_.states[i].parameter) != owned.end();
      };
      if (awaited_.contains(bucket.ticket) || std::ranges::none_of(bucket.states, owns)) continue;
      std::vector<TensorId> values;
      for (std::size_t i : bucket.states) values.push_back(step_.states[i].parameter->value);
      writer_.wait_ahead("gathered_parameters", bucket.ticket, bucket.axis, std::move(values));
      awaited_.insert(bucket.ticket);
    }
  }

  void forward(Chunk& chunk, std::int32_t micro) {
    const auto m = static_cast<std::size_t>(micro);
    TensorId x = chunk.stage == 0 ? step_.tokens[m] : taken(chunk.in, micro);
    for (std::size_t i = 0; i < chunk.blocks.size(); ++i) {
      wait_for(chunk.owned[i]);
      x = chunk.blocks[i]->forward(writer_, x, m);
    }
    if (is_last(chunk.stage)) return;
    if (has_stage(chunk.stage + 1))
      chunk_with(chunk.stage + 1).in[micro] = x;
    else
      chunk.out[micro] = x;
  }

  void backward(Chunk& chunk, std::int32_t micro, GradientExchange& gradients) {
    const bool final = !schedule_.split && ++chunk.complete == schedule_.shape.micro_batches;
    TensorId dy = is_last(chunk.stage) ? no_tensor : taken(chunk.gradient_in, micro);
    for (std::size_t i = chunk.blocks.size(); i-- > 0;) {
      if (schedule_.split) writer_.hold_back();
      dy = chunk.blocks[i]->backward(writer_, dy, static_cast<std::size_t>(micro));
      if (schedule_.split) chunk.weights[micro].push_back(writer_.held());
      if (final) complete(chunk.owned[i], gradients);
    }
    if (chunk.stage == 0) return;
    if (has_stage(chunk.stage - 1))
      chunk_with(chunk.stage - 1).gradient_in[micro] = dy;
    else
      chunk.gradient_out[micro] = dy;
  }

  void weights(Chunk& chunk, std::int32_t micro, GradientExchange& gradients) {
    const bool final = ++chunk.complete == schedule_.shape.micro_batches;
    std::size_t block = chunk.blocks.size();
    for (auto& held : chunk.weights.at(micro)) {
      for (auto& write : held) write(writer_);
      --block;
      if (final) complete(chunk.owned[block], gradients);
    }
    chunk.weights.erase(micro);
  }

  // The last micro-batch has added its part to these gradients: hands them to the exchange. Partial sums, and the
  // gradient of the shared weight, to which another block adds, are left to GradientExchange::finish().
  void complete(const std::vector<const Parameter*>& owned, GradientExchange& gradients) {
    for (std::size_t i = owned.size(); i-- > 0;)
      if (!owned[i]->partial && owned[i] != shared_) gradients.ready(writer_, *owned[i]);
  }

  void message(Chunk& chunk, const Slot& slot) {
    const bool forward = is_forward(slot.action), send = is_send(slot.action);
    const std::int32_t other = forward == send ? chunk.stage + 1 : chunk.stage - 1,
                       lower = std::min(chunk.stage, other);
    const int label = (slot.micro * schedule_.shape.stages() + lower) * 2 + (forward ? 0 : 1);
    const Rank peer = schedule_.rank_of(other);
    if (send) return writer_.send("send", peer, taken(forward ? chunk.out : chunk.gradient_out, slot.micro), label);
    const auto cut = static_cast<std::size_t>(step_.config.strategy.sequence_parallel ? mesh_.shape().tensor : 1);
    const std::size_t rows = step_.config.positions_here() * step_.config.micro_batch_size / cut;
    const TensorId t = writer_.tensor(forward ? "received" : "received_gradient", step_.parameters.types().value, rows,
                                      step_.config.model.hidden_size);
    writer_.receive("receive", peer, t, label);
    (forward ? chunk.in : chunk.gradient_in)[slot.micro] = t;
  }

  void average_loss() {
    const Writer::Scope scope(writer_, "loss");
    const std::vector<Transfer> one{{{step_.loss, 0}, {step_.loss, 0}, 1, DType::f64}};
    const Axis replicas = replica_axis(mesh_.shape());
    if (const Rank ranks = size_of(mesh_.shape(), replicas); ranks > 1)
      writer_.exchange(
          "average",
          {.axis = replicas, .reduction = kernels::Reduction::scaled_sum, .factor = 1.0 / ranks, .transfers = one});
    if (mesh_.shape().pipeline > 1) writer_.exchange("to_all_stages", {.axis = Axis::pipeline, .transfers = one});
  }

  StepPurpose purpose_;
  std::size_t cached_;  // generation: the most positions
  Derived derived_;
  PipelineSchedule schedule_;
  Mesh mesh_;
  Place place_;
  Writer writer_;
  RankStep step_;
  std::vector<Chunk> chunks_;
  std::size_t known_ = 0;  // parameters of the blocks so far
  std::vector<std::size_t> block_ends_;
  const Parameter* shared_ = nullptr;
  std::vector<AllGatherBucket> gathered_;
  std::set<int> awaited_;  // tickets of the buckets in gathered_ that are waited for already
};

}  // namespace

PipelineSchedule schedule_of(const StepConfig& c, const Derived& d) {
  const PipelineShape shape{c.strategy.pipeline, c.strategy.virtual_pipeline,
                            static_cast<std::int32_t>(d.micro_batches)};
  if (!c.strategy.schedule.empty()) return pipeline_schedule(c.strategy.schedule, shape);
  return pipeline_schedule(shape.chunks > 1 ? "interleaved" : "1f1b", shape);
}

RankStep lay_out(const StepConfig& config, Rank world, Rank rank, StepPurpose purpose, std::size_t cached,
                 const PipelineSchedule* order) {
  return LayingOut(config, world, rank, purpose, cached, order).run();
}

}  // namespace trellis::train
