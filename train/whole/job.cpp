#include "train/whole/job.h"

#include <algorithm>
#include <optional>

#include "kernels/reduce/cast.h"
#include "text/refuse.h"
#include "train/layers/cross_entropy.h"
#include "train/step/run.h"
#include "train/whole/rank_step.h"

namespace trellis::train {
namespace {

std::vector<float> widened(const Memory& at, const Tensor& t, TensorId id, std::size_t n) {
  std::vector<float> out(n);
  if (t.type == DType::f32)
    std::copy_n(at.as<float>(id), n, out.begin());
  else
    kernels::cast(t.type, at.at(id), DType::f32, out.data(), n);
  return out;
}

}  // namespace

Communicators communicators_for(const RankStep& step, ccl::Communicator& world) {
  Communicators made;
  const MeshShape& shape = step.mesh.shape();
  const Place& p = step.place;
  // Splits by colour (the group's first rank) and key (the place in the group).
  const auto split = [&](Axis axis, const Group& group) {
    const auto found = std::ranges::find(group, world.rank());
    const bool member = found != group.end();
    auto c =
        world.split(member ? std::optional<int>(group.front()) : std::nullopt, static_cast<int>(found - group.begin()));
    if (member) made[axis] = std::shared_ptr<ccl::Communicator>(std::move(c));
  };
  for (Axis axis : {Axis::tensor, Axis::context, replica_axis(shape), Axis::pipeline})
    if (size_of(shape, axis) > 1) split(axis, step.mesh.group(axis, world.rank()));
  if (shape.expert > 1)
    for (Axis axis : {Axis::expert_model, Axis::expert_data})
      if (size_of(shape, axis) > 1) split(axis, step.mesh.group(axis, world.rank()));
  if (step.kv_copies > 1)
    for (const Group& group : step.mesh.kv_groups(step.kv_copies))
      if (std::ranges::find(group, world.rank()) != group.end()) split(Axis::kv, group);
  if (step.config.model.tie_word_embeddings && shape.pipeline > 1) {
    const Group stages = step.mesh.group(Axis::pipeline, world.rank());
    const bool end = p.pipeline == 0 || p.pipeline + 1 == shape.pipeline;
    split(Axis::tied, end ? Group{stages.front(), stages.back()} : Group{});
  }
  return made;
}

Job::Job(const StepConfig& config, ccl::Communicator& world, int threads)
    : step_(std::make_unique<RankStep>(lay_out(config, world.ranks(), world.rank()))) {
  runner_ = std::make_unique<Runner>(step_->program, communicators_for(*step_, world), threads);
  fill([&](const Parameter& p) { return initial_values(p, config.seed); });
}

Job::~Job() = default;

const Parameters& Job::parameters() const { return step_->parameters; }

void Job::fill(const std::function<Values(const Parameter&)>& values_of) {
  for (const OptimizerState& s : step_->states) fill(*s.parameter, values_of(*s.parameter));
}

void Job::fill(const Parameter& p, const Values& value) {
  runner_->settle();
  for (const OptimizerState& s : step_->states) {
    if (s.parameter != &p) continue;
    std::vector<float> whole(p.slice.elements());
    for (std::size_t r = 0; r < p.slice.row_count; ++r)
      for (std::size_t c = 0; c < p.slice.column_count; ++c)
        whole[r * p.slice.column_count + c] = value(p.slice.index(r, c));
    const Tensor& t = step_->program.tensor(p.value);
    if (t.type == DType::f32)
      std::ranges::copy(whole, runner_->as<float>(p.value));
    else
      kernels::cast(DType::f32, whole.data(), t.type, runner_->at(p.value), whole.size());
    if (s.master == no_tensor) continue;
    // Masters begin as the parameters are, rounding included.
    const std::vector<float> rounded = widened(*runner_, t, p.value, whole.size());
    std::copy_n(rounded.begin() + static_cast<std::ptrdiff_t>(std::min(s.first_element(), rounded.size())),
                s.slice.elements(), runner_->as<float>(s.master));
  }
}

void put_batch(const RankStep& step, Runner& runner, std::size_t micro, const MicroBatch& from) {
  const std::size_t batch = step.config.micro_batch_size;
  const SequencePart all = sequence_part(step.config.seq_length, step.mesh.shape(), step.place), one{.whole = 1};
  // Copies this rank's positions from whole sequences; sequences alternate within a position.
  const auto put = [&](const std::vector<TensorId>& to, const std::int32_t* numbers, const SequencePart& part,
                       const char* what) {
    if (to.empty()) return;
    if (numbers == nullptr) text::refuse("a micro-batch of {} without {}", step.config.model.architecture, what);
    auto* const out = runner.as<std::int32_t>(to.at(micro));
    for (std::size_t b = 0; b < batch; ++b)
      for (std::size_t s = 0; s < part.count(); ++s) out[s * batch + b] = numbers[b * part.whole + part.position(s)];
  };
  put(step.tokens, from.tokens, all, "tokens");
  put(step.types, from.types, all, "types");
  put(step.labels, from.labels, all, "labels");
  put(step.next, from.next, one, "next");
  put(step.starts, from.starts, all, "the starts of documents");
  if (!step.counted.empty())
    *runner.as<std::int32_t>(step.counted.at(micro)) =
        static_cast<std::int32_t>(counted_labels(from.labels, batch * all.whole));
}

Job::Result Job::run(const StepInputs& now) {
  runner_->run(now);
  return {*runner_->as<double>(step_->loss), step_->norm == no_tensor ? 0 : *runner_->as<double>(step_->norm)};
}

std::vector<float> Job::values(const Parameter& p) const {
  runner_->settle();
  return widened(*runner_, step_->program.tensor(p.value), p.value, p.slice.elements());
}

std::vector<float> Job::gradients(const Parameter& p) const {
  runner_->settle();
  std::vector<float> all = widened(*runner_, step_->program.tensor(p.gradient), p.gradient, p.slice.elements());
  if (!step_->config.strategy.zero1) return all;
  // The step put its sums into another tensor, and only those of the rows that each rank updates. This tensor has the
  // rank's own terms for all rows, which are summed here.
  const MeshShape& shape = step_->mesh.shape();
  if (const Axis axis = data_axis(shape, p); size_of(shape, axis) > 1 && !all.empty())
    runner_->communicators().at(axis)->all_reduce(all.data(), all.data(), all.size(), DType::f32);
  for (float& each : all) each /= static_cast<float>(size_of(shape, Axis::sharding));
  return all;
}

}  // namespace trellis::train
