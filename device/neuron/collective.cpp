#include "device/neuron/collective.h"

#include <fmt/format.h>

#include <optional>

#include "device/neuron/element.h"
#include "device/neuron/wait.h"

namespace trellis::device {
namespace {

constexpr auto patience = std::chrono::minutes(5);

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

// A slice that stands for a part of a tensor, as long as this lives.
class Slice {
 public:
  Slice(const NeuronRuntime& r, const InTensor& in, std::size_t bytes) : library_(r.library()) {
    r.call(library_.nrt_tensor_allocate_slice, "nrt_tensor_allocate_slice", in.tensor, in.offset, bytes, "collective",
           &tensor);
  }
  ~Slice() { library_.nrt_tensor_free(&tensor); }
  Slice(const Slice&) = delete;
  Slice& operator=(const Slice&) = delete;
  nrt::Tensor* tensor = nullptr;

 private:
  const nrt::Library& library_;
};

}  // namespace

std::string why_not_native(const NeuronRuntime& r, const TensorsByAddress& tensors, const NativeCollective& c) {
  if (std::string why = r.why_not(Capability::collectives); !why.empty()) return why;
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

void run_native(const NeuronRuntime& r, const TensorsByAddress& tensors, int core, const NativeCollective& c) {
  const nrt::Library& l = r.library();
  const auto vnc = static_cast<std::uint32_t>(core);
  std::vector<std::uint32_t> group = c.group;
  r.call(l.nrt_cc_global_comm_init, "nrt_cc_global_comm_init", vnc, group[c.rank], c.world);
  const std::size_t in_bytes = c.count * size_of(c.type);
  Slice in(r, *tensors.find(c.input, in_bytes), in_bytes),
      out(r, *tensors.find(c.output, output_bytes(c)), output_bytes(c));
  nrt::Comm comm{group.data(), c.rank, static_cast<std::uint32_t>(group.size()), group[c.rank], c.world, vnc};
  nrt::TensorList ins{&in.tensor, 1}, outs{&out.tensor, 1};
  nrt::CollectiveContext* context = nullptr;
  r.call(l.nrta_cc_prepare, "nrta_cc_prepare", &comm, &ins, &outs, *element_of(c.type),
         kind_of(c.op).value_or(nrt::ReduceKind::add), static_cast<nrt::CollectiveKind>(c.kind), &context);
  nrt::ErrorTracker* errors = nullptr;
  r.call(l.nrta_error_tracker_create, "nrta_error_tracker_create", vnc, &errors);
  const auto destroy = [&l](nrt::ErrorTracker* e) { l.nrta_error_tracker_destroy(e); };
  const std::unique_ptr<nrt::ErrorTracker, decltype(destroy)> kept(errors, destroy);
  nrt::Sequence sequence = 0;
  r.call(l.nrta_cc_schedule, "nrta_cc_schedule", &context, 0, errors, &sequence);
  wait_for(r, sequence, patience);
  const nrt::AsyncError* list = nullptr;
  std::size_t count = 0;
  r.call(l.nrta_error_tracker_get_list, "nrta_error_tracker_get_list", errors, &list, &count);
  if (count != 0) r.check(static_cast<nrt::Status>(list[0].error_code), "nrta_cc_schedule");
}

}  // namespace trellis::device
