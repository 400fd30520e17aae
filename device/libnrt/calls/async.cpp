// Queued work: copies and runs, and how callers learn that they are done.
#include <algorithm>
#include <tuple>

#include "device/libnrt/exports.h"

namespace trellis::device::nrt {
namespace {

std::shared_ptr<ErrorTrackerObject> tracker_of(Runtime& r, ErrorTracker* tracker) {
  return tracker == nullptr ? nullptr : r.trackers.get(tracker);
}

// Adds work to a queue of the core's execution unit; work on tensors in host memory (`vnc` below 0), to one of core 0.
void queue_up(Runtime& r, int vnc, ExecutionUnit unit, int queue, ErrorTracker* tracker, Sequence* out,
              std::uint64_t bytes, std::function<void()> work) {
  constexpr std::string_view types[] = {"nrt_tensor_read", "nrt_tensor_write", "nrt_tensor_copy", "nc_exec_running"};
  const auto errors = tracker_of(r, tracker);
  const auto core = static_cast<std::uint32_t>(std::max(vnc, 0));
  const Sequence sequence =
      r.queues.of(*r.core(core), core, unit, queue)
          ->add([&r, core, bytes, type = types[static_cast<std::size_t>(unit)],
                 work = std::move(work)] { r.timed(type, static_cast<int>(core), bytes, "", work); },
                errors);
  if (out != nullptr) *out = sequence;
}

std::shared_ptr<Queue> queue_with(Runtime& r, Sequence sequence) {
  std::shared_ptr<Queue> queue = r.queues.find(sequence);
  if (queue == nullptr) refuse(Status::invalid, "sequence {:#x}: no queue has handed it out", sequence);
  return queue;
}

constexpr std::uint64_t count_of(Sequence s) { return s & ((std::uint64_t{1} << sequence_count_bits) - 1); }

}  // namespace

Status nrta_tensor_write(Tensor* tensor, const void* buffer, std::uint64_t offset, std::uint64_t size, int queue,
                         ErrorTracker* errors, Sequence* out) {
  return call("nrta_tensor_write", [&](Runtime& r) {
    const auto part = r.tensors.get(tensor)->part(offset, size);
    if (size != 0) expect_given(buffer, "the buffer");
    queue_up(r, part.storage->vnc(), ExecutionUnit::tensor_write, queue, errors, out, size,
             [part, buffer] { copy_from_host(part, buffer); });
  });
}

Status nrta_tensor_read(void* buffer, Tensor* tensor, std::uint64_t offset, std::uint64_t size, int queue,
                        ErrorTracker* errors, Sequence* out) {
  return call("nrta_tensor_read", [&](Runtime& r) {
    const auto part = r.tensors.get(tensor)->part(offset, size);
    if (size != 0) expect_given(buffer, "the buffer");
    queue_up(r, part.storage->vnc(), ExecutionUnit::tensor_read, queue, errors, out, size,
             [part, buffer] { copy_to_host(part, buffer); });
  });
}

Status nrta_tensor_copy(Tensor* from, std::uint64_t from_offset, Tensor* to, std::uint64_t to_offset,
                        std::uint64_t size, int queue, ErrorTracker* errors, Sequence* out) {
  return call("nrta_tensor_copy", [&](Runtime& r) {
    const auto a = r.tensors.get(from)->part(from_offset, size);
    const auto b = r.tensors.get(to)->part(to_offset, size);
    if (a.storage->vnc() >= 0 && b.storage->vnc() >= 0 && a.storage->vnc() != b.storage->vnc())
      refuse(Status::invalid, "a copy from core {} to core {}: both tensors must be on the same core", a.storage->vnc(),
             b.storage->vnc());
    queue_up(r, std::max(a.storage->vnc(), b.storage->vnc()), ExecutionUnit::tensor_op, queue, errors, out, size,
             [a, b] { copy_between(b, a); });
  });
}

Status nrta_execute_schedule(Model* model, const TensorSet* inputs, TensorSet* outputs, int queue, ErrorTracker* errors,
                             Sequence* out) {
  return call("nrta_execute_schedule", [&](Runtime& r) {
    const auto object = r.models.get(model);
    auto run = ModelObject::bind(object, *r.sets.get(inputs), *r.sets.get(outputs));
    const auto told = r.callback();
    queue_up(r, object->vnc(), ExecutionUnit::compute, queue, errors, out, 0, [run = std::move(run), told] {
      Status status = Status::success;
      try {
        run.execute(1);
      } catch (...) {
        status = Status::completed_with_error;
      }
      if (told.function != nullptr)
        told.function(told.params, run.model->id(), static_cast<std::uint32_t>(run.model->vnc()), 0, status);
      if (status != Status::success) refuse(status, "a run of {} failed", run.model->program().name());
    });
  });
}

Status nrta_is_completed(Sequence sequence, bool* done) {
  return call("nrta_is_completed", [&](Runtime& r) {
    expect_given(done, "the answer's place");
    *done = queue_with(r, sequence)->is_completed(count_of(sequence));
  });
}

// Gives the last sequence that is complete; its count is 0 if none is.
Status nrta_get_sequence(std::uint32_t core, ExecutionUnit unit, int queue, Sequence* out) {
  return call("nrta_get_sequence", [&](Runtime& r) {
    expect_given(out, "the sequence's place");
    *out = r.queues.of(*r.core(core), core, unit, queue)->last_completed();
  });
}

Status nrta_get_completion_handle(Sequence sequence, int* fd) {
  return call("nrta_get_completion_handle", [&](Runtime& r) {
    expect_given(fd, "the descriptor's place");
    *fd = -1;
    *fd = queue_with(r, sequence)->completion_file(count_of(sequence));
  });
}

Status nrta_error_tracker_create(std::uint32_t core, ErrorTracker** out) {
  return call("nrta_error_tracker_create", [&](Runtime& r) {
    expect_given(out, "the handle's place");
    *out = nullptr;
    r.core(core);
    *out = r.trackers.add<ErrorTracker*>(std::make_shared<ErrorTrackerObject>(core));
  });
}

void nrta_error_tracker_destroy(ErrorTracker* tracker) {
  call("nrta_error_tracker_destroy", [&](Runtime& r) { r.trackers.take(tracker); });
}

Status nrta_error_tracker_get_list(ErrorTracker* tracker, const AsyncError** list, std::size_t* count) {
  return call("nrta_error_tracker_get_list", [&](Runtime& r) {
    const auto object = r.trackers.get(tracker);
    expect_given(list, "the list's place");
    expect_given(count, "the count's place");
    std::tie(*list, *count) = object->list();
  });
}

Status nrt_register_async_exec_callback(ExecCallback function, void* params) {
  return call("nrt_register_async_exec_callback", [&](Runtime& r) { r.set_callback({function, params}); });
}

Status nrt_async_drain_queued_execs(std::int32_t vnc) {
  return call("nrt_async_drain_queued_execs", [&](Runtime& r) {
    r.core(vnc);
    const std::shared_ptr<Queue> queue = r.queues.find(static_cast<std::uint32_t>(vnc), ExecutionUnit::compute, 0);
    if (queue != nullptr && !queue->wait_until_empty(r.world.timeout()))
      refuse(Status::timeout, "core {} still runs after {} ms", vnc, r.world.timeout().count());
  });
}

}  // namespace trellis::device::nrt
