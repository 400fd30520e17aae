// Calls that all devices make together: communicators, barriers, gathering of small data, host-driven collectives.
#include <algorithm>
#include <cstring>
#include <utility>

#include "device/libnrt/exports.h"
#include "device/neuron/dtype_conversion.h"

namespace trellis::device::nrt {
namespace {

// The start of a member's contribution: its core and time. There is room for the data that follow.
Bytes with_clock(const RankClock& clock, std::size_t room) {
  Bytes out;
  out.reserve(sizeof clock + room);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&clock);
  out.assign(bytes, bytes + sizeof clock);
  return out;
}

std::vector<RankClock> clocks_of(const std::vector<Bytes>& all) {
  std::vector<RankClock> out(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() < sizeof(RankClock))
      refuse(Status::network_proxy, "member {} brought {} bytes", i, all[i].size());
    std::memcpy(&out[i], all[i].data(), sizeof(RankClock));
  }
  return out;
}

// Adds the collective's simulated time. Only warns where the machine cannot price it, as when it has fewer cores than
// there are members.
void take_time(Device& device, CollectiveSpec run) {
  try {
    if (SimulatedTime* const time = device.simulated_time()) time->spend(run);
  } catch (const std::exception& e) {
    warn("collective", e.what());
  }
}

std::vector<Bytes> meet(Runtime& r, Device& device, Contribution c, std::string_view collective, std::size_t bytes,
                        std::size_t element) {
  const std::size_t own = c.bytes.size();
  Bytes whole = with_clock(clock_of(device), own);
  whole.insert(whole.end(), c.bytes.begin(), c.bytes.end());
  c.bytes = std::move(whole);
  const auto all = r.world.meet(c);
  take_time(device, {.collective = collective,
                     .rank = static_cast<int>(c.member),
                     .ranks = static_cast<int>(c.members),
                     .bytes = bytes,
                     .element = element,
                     .clocks = clocks_of(all)});
  return all;
}

kernels::DType type_of(NrtDType e) {
  const kernels::DType type = device::type_of(e);
  if (e == NrtDType::f32r || element_of(type) != e)
    refuse(Status::invalid, "element type {}: expected one of 1 to 15 but 11", static_cast<int>(e));
  return type;
}

kernels::Reduction reduction_of(ReduceKind op) {
  if (op == ReduceKind::add) return kernels::Reduction::sum;
  if (op == ReduceKind::max) return kernels::Reduction::max;
  if (op == ReduceKind::min) return kernels::Reduction::min;
  refuse(Status::invalid, "reduction {}: expected 0 (add), 2 (max) or 3 (min)", static_cast<int>(op));
}

std::string_view name_of(CollectiveKind kind) {
  if (kind == CollectiveKind::all_gather) return "all_gather";
  if (kind == CollectiveKind::all_reduce) return "all_reduce";
  if (kind == CollectiveKind::reduce_scatter) return "reduce_scatter";
  refuse(Status::invalid, "collective {}: expected 0 to 2", static_cast<int>(kind));
}

std::vector<TensorObject::Place> places_of(Runtime& r, const TensorList* list, std::uint32_t vnc) {
  expect_given(list, "a tensor list");
  if (list->num_tensors == 0 || list->num_tensors > 1024)
    refuse(Status::invalid, "{} tensors: expected 1 to 1024", list->num_tensors);
  expect_given(list->tensors, "the tensors of a list");
  std::vector<TensorObject::Place> out;
  for (std::size_t i = 0; i < list->num_tensors; ++i) {
    out.push_back(r.tensors.get(list->tensors[i])->place());
    const int on = out.back().storage->vnc();
    if (on != static_cast<int>(vnc)) refuse(Status::invalid, "tensor {} of a list is on core {}, not {}", i, on, vnc);
  }
  return out;
}

void expect_sizes(const CollectiveContextObject& c) {
  const std::size_t n = c.group.size(), element = size_of(type_of(c.element));
  if (c.inputs.size() != c.outputs.size())
    refuse(Status::invalid, "{} inputs and {} outputs", c.inputs.size(), c.outputs.size());
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const std::size_t in = c.inputs[i].bytes, out = c.outputs[i].bytes;
    const std::size_t wanted = c.kind == CollectiveKind::all_gather                      ? in * n
                               : c.kind == CollectiveKind::reduce_scatter && in % n == 0 ? in / n
                                                                                         : in;
    if (out != wanted || in % element != 0 || (c.kind == CollectiveKind::reduce_scatter && in % (n * element) != 0))
      refuse(Status::invalid, "{} of {} members: an input of {} bytes and an output of {}; expected one of {}",
             name_of(c.kind), n, in, out, wanted);
  }
}

// Runs the collective on one tensor of the lists. Sums are in the order of the members, so all get the same bits.
void run_one(Runtime& r, const CollectiveContextObject& c, std::size_t i, const std::string& key) {
  Device& device = *c.inputs[i].storage->device();
  const std::size_t element = size_of(type_of(c.element)), head = sizeof(RankClock);
  Bytes own(c.inputs[i].bytes);
  {
    const StorageLock lock({c.inputs[i].storage.get()});
    std::memcpy(own.data(), c.inputs[i].data(), own.size());
  }
  const std::size_t larger = std::max(c.inputs[i].bytes, c.outputs[i].bytes);
  const auto all = meet(r, device,
                        {key,
                         fmt::format("{} of {} bytes, type {}, op {}", name_of(c.kind), own.size(),
                                     static_cast<int>(c.element), static_cast<int>(c.op)),
                         c.rank, static_cast<std::uint32_t>(c.group.size()), std::move(own)},
                        name_of(c.kind), larger, element);
  const std::size_t n = c.outputs[i].bytes;
  for (const Bytes& one : all)
    if (one.size() != head + c.inputs[i].bytes) refuse(Status::network_proxy, "a member brought {} bytes", one.size());
  const StorageLock lock({c.outputs[i].storage.get()});
  std::byte* const to = c.outputs[i].data();
  if (c.kind == CollectiveKind::all_gather) {
    for (std::size_t m = 0; m < all.size(); ++m)
      std::memcpy(to + m * c.inputs[i].bytes, all[m].data() + head, c.inputs[i].bytes);
    return;
  }
  const std::size_t from = head + (c.kind == CollectiveKind::reduce_scatter ? c.rank * n : 0);
  std::vector<const void*> sources;
  for (const Bytes& one : all) sources.push_back(one.data() + from);
  kernels::reduce(reduction_of(c.op), type_of(c.element), sources, to, n / element);
}

}  // namespace

Status nrt_build_global_comm(std::int32_t vnc, std::uint32_t id, std::uint32_t devices) {
  return call("nrt_build_global_comm", [&](Runtime& r) {
    r.core(vnc);
    r.world.join(id, devices);
  });
}

Status nrt_cc_global_comm_init(std::uint32_t vnc, std::uint32_t id, std::uint32_t devices) {
  return call("nrt_cc_global_comm_init", [&](Runtime& r) {
    r.core(vnc);
    r.world.join(id, devices);
    r.collectives.forget(vnc);
  });
}

Status nrt_barrier(std::int32_t vnc, std::uint32_t id, std::uint32_t devices) {
  return call("nrt_barrier", [&](Runtime& r) {
    const auto core = r.core(vnc);
    r.world.join(id, devices);
    r.timed("nrt_barrier", vnc, 0, "", [&] {
      meet(r, *core, {"barrier", "barrier", id, devices, {}}, "barrier", 0, 4);
    });
  });
}

Status nrt_all_gather(std::int32_t vnc, std::uint32_t id, std::uint32_t devices, std::uint32_t bytes, void* input,
                      void* output) {
  return call("nrt_all_gather", [&](Runtime& r) {
    const auto core = r.core(vnc);
    if (bytes != 0) expect_given(input, "the input"), expect_given(output, "the output");
    r.world.join(id, devices);
    const auto* const own = static_cast<const std::byte*>(input);
    r.timed("nrt_all_gather", vnc, bytes, "all_gather", [&] {
      const auto all =
          meet(r, *core,
               {"all_gather", fmt::format("nrt_all_gather of {} bytes", bytes), id, devices, Bytes(own, own + bytes)},
               "all_gather", std::size_t{bytes} * devices, 1);
      for (std::size_t m = 0; m < all.size() && bytes != 0; ++m)
        std::memcpy(static_cast<std::byte*>(output) + m * bytes, all[m].data() + sizeof(RankClock), bytes);
    });
  });
}

Status nrta_cc_prepare(CommInfo* comm, TensorList* inputs, TensorList* outputs, NrtDType element, ReduceKind op,
                       CollectiveKind kind, CollectiveContext** out) {
  return call("nrta_cc_prepare", [&](Runtime& r) {
    expect_given(out, "the context's place");
    *out = nullptr;
    expect_given(comm, "the communicator");
    expect_given(comm->replica_group, "the replica group");
    if (comm->rank_n == 0 || comm->rank_n > 65'536 || comm->rank >= comm->rank_n)
      refuse(Status::invalid, "rank {} of {}", comm->rank, comm->rank_n);
    auto c = std::make_shared<CollectiveContextObject>();
    c->vnc = comm->vnc, c->rank = comm->rank, c->id = comm->ctx_device_id;
    c->element = element, c->op = op, c->kind = kind;
    c->group.assign(comm->replica_group, comm->replica_group + comm->rank_n);
    if (c->group[c->rank] != c->id)
      refuse(Status::invalid, "rank {} of the replica group is device {}, not {}", c->rank, c->group[c->rank], c->id);
    for (const std::uint32_t member : c->group)
      if (member >= comm->ctx_device_count || std::ranges::count(c->group, member) != 1)
        refuse(Status::invalid, "device {} of a replica group: expected each once, below {}", member,
               comm->ctx_device_count);
    name_of(kind);
    if (kind != CollectiveKind::all_gather) reduction_of(op);
    r.core(comm->vnc);
    c->inputs = places_of(r, inputs, comm->vnc);
    c->outputs = places_of(r, outputs, comm->vnc);
    expect_sizes(*c);
    *out = r.contexts.add<CollectiveContext*>(std::move(c));
  });
}

// Uses the context up, even if the queue is full.
Status nrta_cc_schedule(CollectiveContext** context, int queue, ErrorTracker* tracker, Sequence* out) {
  return call("nrta_cc_schedule", [&](Runtime& r) {
    expect_given(context, "the context's place");
    const auto errors = tracker == nullptr ? nullptr : r.trackers.get(tracker);
    const auto c = r.contexts.take(std::exchange(*context, nullptr));
    std::string group = fmt::format("{}", queue);
    for (const std::uint32_t member : c->group) group += fmt::format(" {}", member);
    if (group.size() > 4000) group = fmt::format("{} {:#x}", queue, std::hash<std::string>()(group));
    const auto in = r.queues.of(*r.core(c->vnc), c->vnc, ExecutionUnit::collectives, queue);
    const Sequence s = r.collectives.add(c->vnc, group, [&](std::uint64_t number) {
      return in->add(
          [&r, c, key = fmt::format("cc {} of {}", number, group)] {
            std::uint64_t bytes = 0;
            for (const auto& input : c->inputs) bytes += input.bytes;
            r.timed("cc_running", static_cast<int>(c->vnc), bytes, std::string(name_of(c->kind)), [&] {
              for (std::size_t i = 0; i < c->inputs.size(); ++i) run_one(r, *c, i, key);
            });
          },
          errors);
    });
    if (out != nullptr) *out = s;
  });
}

}  // namespace trellis::device::nrt
