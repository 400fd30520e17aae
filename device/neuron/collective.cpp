#include "device/neuron/collective.h"

#include <fmt/format.h>

#include <optional>

#include "device/neuron/dtype_conversion.h"
#include "device/neuron/queue_completion.h"
#include "device/neuron/tensor_view.h"

namespace trellis::device {
namespace {

std::optional<nrt::ReduceKind> kind_of(kernels::Reduction op) {
  if (op == kernels::Reduction::sum) return nrt::ReduceKind::add;
  if (op == kernels::Reduction::max) return nrt::ReduceKind::max;
  if (op == kernels::Reduction::min) return nrt::ReduceKind::min;
  return std::nullopt;
}

std::size_t output_bytes(const NativeCollective& c) {
  const std::size_t in = c.count * size_of(c.type), n = c.group.size();
  if (c.kind == NativeCollective::Kind::all_gather) return in * n;
  return c.kind == NativeCollective::Kind::reduce_scatter ? in / n : in;
}

// What the runtime uses until the collective is done.
struct InUse {
  TensorView in, out;
  QueueErrors errors;
  NativeTurn turn;
};

class QueuedCollective : public NativeCollectiveRun {
 public:
  explicit QueuedCollective(std::shared_ptr<NeuronRuntime> runtime) : runtime_(std::move(runtime)) {}
  ~QueuedCollective() override {
    try {
      if (in_use_) runtime_->keep(in_use_, sequence_);
    } catch (...) {  // out of memory: what the device may still use is released here
    }
  }
  QueuedCollective(const QueuedCollective&) = delete;
  QueuedCollective& operator=(const QueuedCollective&) = delete;

  // If it throws, the runtime has not taken the collective, and does not use its memory.
  void hand_in(nrt::CollectiveContext* context, std::shared_ptr<InUse> in_use) {
    runtime_->call(runtime_->library().nrta_cc_schedule, "nrta_cc_schedule", &context, 0, in_use->errors.tracker(),
                   &sequence_);
    in_use_ = std::move(in_use);
  }
  bool done() override {
    if (!in_use_) return true;
    if (!is_done(*runtime_, sequence_)) return false;
    const auto ended = std::move(in_use_);
    ended->errors.check("nrta_cc_schedule");
    return true;
  }

 private:
  const std::shared_ptr<NeuronRuntime> runtime_;
  std::shared_ptr<InUse> in_use_;  // null: it is done, or was not handed in
  nrt::Sequence sequence_ = 0;
};

// Why the runtime cannot do the collective in any world; empty: it can.
std::string refusal(const TensorsByAddress& tensors, const NativeCollective& c) {
  if (c.group.empty() || c.rank >= c.group.size())
    return fmt::format("neuron: rank {} of a group of {}", c.rank, c.group.size());
  if (c.kind != NativeCollective::Kind::all_gather && !kind_of(c.op))
    return fmt::format("neuron: native collectives do not know {}; expected sum, min or max", kernels::name(c.op));
  if (!element_of(c.type)) return fmt::format("neuron: native collectives do not know {}", kernels::name(c.type));
  if (c.kind == NativeCollective::Kind::reduce_scatter && c.count % c.group.size() != 0)
    return fmt::format("neuron: {} elements for {} members: expected a multiple", c.count, c.group.size());
  if (c.count == 0 || !tensors.find(c.input, c.count * size_of(c.type)) || !tensors.find(c.output, output_bytes(c)))
    return "neuron: native collectives need input and output in the device's memory";
  return {};
}

}  // namespace

NativeWorld NeuronCollectives::join(const NativeWorld& proposed) {
  const std::lock_guard lock(mutex_);
  if (world_.identity != 0) return world_;
  no_world_ = runtime_->enter(proposed.identity);
  if (!no_world_.empty()) return {};
  try {
    runtime_->call(runtime_->library().nrt_cc_global_comm_init, "nrt_cc_global_comm_init",
                   static_cast<std::uint32_t>(core_), proposed.number, proposed.size);
  } catch (const std::exception& e) {
    runtime_->leave();
    no_world_ = e.what();
    return {};
  }
  world_ = {runtime_->world_of(proposed.identity), proposed.number, proposed.size};
  return world_;
}

std::string NeuronCollectives::refuses(const NativeCollective& c) const {
  if (std::string why = refusal(tensors_, c); !why.empty()) return why;
  const std::lock_guard lock(mutex_);
  if (world_.identity != 0) return {};
  return no_world_.empty() ? fmt::format("neuron core {} has joined no world; call join() first", core_) : no_world_;
}

std::unique_ptr<NativeCollectiveRun> NeuronCollectives::start(const NativeCollective& c, NativeTurn turn) {
  if (const std::string why = refuses(c); !why.empty()) throw Unsupported(why);
  const NeuronRuntime& r = *runtime_;
  const auto vnc = static_cast<std::uint32_t>(core_);
  std::vector<std::uint32_t> group = c.group;
  std::shared_ptr<InUse> in_use(
      new InUse{TensorView(r, tensors_, c.input, c.count * size_of(c.type), "input of a collective"),
                TensorView(r, tensors_, c.output, output_bytes(c), "output of a collective"),
                {r, core_},
                std::move(turn)});
  nrt::Tensor *in = in_use->in.tensor(), *out = in_use->out.tensor();
  nrt::CommInfo comm{group.data(), c.rank, static_cast<std::uint32_t>(group.size()), group[c.rank], c.world, vnc};
  nrt::TensorList ins{&in, 1}, outs{&out, 1};
  nrt::CollectiveContext* context = nullptr;
  r.call(r.library().nrta_cc_prepare, "nrta_cc_prepare", &comm, &ins, &outs, *element_of(c.type),
         kind_of(c.op).value_or(nrt::ReduceKind::add), static_cast<nrt::CollectiveKind>(c.kind), &context);
  auto run = std::make_unique<QueuedCollective>(runtime_);
  run->hand_in(context, std::move(in_use));
  return run;
}

}  // namespace trellis::device
