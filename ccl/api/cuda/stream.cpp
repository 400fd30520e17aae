#include <chrono>
#include <memory>

#include "ccl/api/cuda/cuda_error_boundary.h"
#include "ccl/api/handles/handles.h"
#include "device/fork_safe_singleton.h"

using namespace trellis::cuda;

namespace {

using Time = std::chrono::steady_clock;

// An event as CUDA has it: it also knows the time at which its stream reached it.
class Event {
 public:
  Event() { created_ = trellis_event_create(&event_); }
  ~Event() { trellis_event_destroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  trellis_result created() const { return created_; }
  trellis_event event() const { return event_; }
  bool recorded() const { return recorded_; }
  bool dropped() const { return dropped_; }  // at the last record: a failure had stopped its stream
  Time::time_point reached() const { return reached_; }

  static trellis_result record(const std::shared_ptr<Event>& event, trellis_stream stream) {
    auto* kept = new std::shared_ptr<Event>(event);
    event->dropped_ = false;
    if (const trellis_result called = trellis_stream_call_or(stream, reach, drop, kept); called != TRELLIS_OK) {
      delete kept;
      return called;
    }
    event->recorded_ = true;
    return trellis_event_record(event->event_, stream);
  }

 private:
  static std::unique_ptr<std::shared_ptr<Event>> own(void* kept) {
    return std::unique_ptr<std::shared_ptr<Event>>(static_cast<std::shared_ptr<Event>*>(kept));
  }
  static void reach(void* kept) { (*own(kept))->reached_ = Time::now(); }
  static void drop(void* kept) { (*own(kept))->dropped_ = true; }

  trellis_event event_ = nullptr;
  trellis_result created_;
  std::atomic<bool> recorded_ = false, dropped_ = false;
  std::atomic<Time::time_point> reached_ = Time::time_point{};
};

trellis::ccl::api::Handles<Event>& events() {
  return trellis::device::of_this_process([] { return new trellis::ccl::api::Handles<Event>(0x7C05, "cudaEvent_t"); });
}

cudaError_t error_of_event(trellis_result waited, const Event& event) {
  return waited == TRELLIS_OK && event.dropped() ? cudaErrorLaunchFailure : error_of(waited);
}

struct Callback {
  cudaStreamCallback_t function;
  cudaStream_t stream;
  void* user_data;

  static void call(void* callback) { tell(callback, cudaSuccess); }
  static void drop(void* callback) { tell(callback, cudaErrorLaunchFailure); }

 private:
  static void tell(void* callback, cudaError_t status) {
    const std::unique_ptr<Callback> c(static_cast<Callback*>(callback));
    c->function(c->stream, status, c->user_data);
  }
};

}  // namespace

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return guarded([&] {
    if (stream == nullptr || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    trellis_stream made = nullptr;
    const trellis_result created = flags == cudaStreamNonBlocking
                                       ? trellis_stream_create(&made)
                                       : trellis_ordered_stream_create(current_device(), &made);
    *stream = reinterpret_cast<cudaStream_t>(made);
    if (created == TRELLIS_OK) streams().add(made, flags);
    return error_of(created);
  });
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return guarded_wait([&] {
    if (is_default(stream) || stream == cudaStreamPerThread) return cudaErrorInvalidResourceHandle;
    return error_of_stream(streams().destroy(stream_of(stream)));
  });
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return guarded([&] {
    if (flags == nullptr) return cudaErrorInvalidValue;
    *flags = streams().flags(stream_of(stream));
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return guarded_wait([&] {
    if (is_default(stream)) return streams().synchronize(true);
    const trellis_result waited = trellis_stream_synchronize(stream_of(stream));
    if (waited == TRELLIS_OK) return cudaSuccess;
    const bool known = trellis_stream_query(stream_of(stream)) != TRELLIS_INVALID_ARGUMENT;
    return known ? cudaErrorLaunchFailure : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return guarded([&] {
    const trellis_result state = trellis_stream_query(stream_of(stream));
    if (state == TRELLIS_OK || state == TRELLIS_IN_PROGRESS) return error_of(state);
    const bool known = trellis_stream_query(stream_of(stream)) != TRELLIS_INVALID_ARGUMENT;
    return known ? cudaErrorLaunchFailure : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  return guarded([&] { return error_of_stream(trellis_stream_wait(stream_of(stream), events().use(event)->event())); });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* userData) {
  return guarded([&] {
    if (function == nullptr) return cudaErrorInvalidValue;
    return error_of_stream(trellis_stream_call(stream_of(stream), function, userData));
  });
}
cudaError_t cudaLaunchHostFunc_v2(cudaStream_t stream, cudaHostFn_t function, void* userData, unsigned int syncMode) {
  if (syncMode > cudaHostTaskSpinWait) return noted(cudaErrorInvalidValue);
  return cudaLaunchHostFunc(stream, function, userData);
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                                  unsigned int flags) {
  return guarded([&] {
    if (callback == nullptr || flags != 0) return cudaErrorInvalidValue;
    auto kept = std::unique_ptr<Callback>(new Callback{callback, stream, userData});
    const trellis_result called = trellis_stream_call_or(stream_of(stream), Callback::call, Callback::drop, kept.get());
    if (called == TRELLIS_OK) kept.release();
    return error_of_stream(called);
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  return guarded([&] {
    if (event == nullptr) return cudaErrorInvalidValue;
    *event = nullptr;
    const auto made = std::make_shared<Event>();
    if (made->created() == TRELLIS_OK) *event = static_cast<cudaEvent_t>(events().add(made));
    return error_of(made->created());
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return guarded([&] {
    events().take(event);
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return guarded([&] { return error_of_stream(Event::record(events().use(event).share(), stream_of(stream))); });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return flags > cudaEventRecordExternal ? noted(cudaErrorInvalidValue) : cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return guarded_wait([&] {
    const auto e = events().use(event);
    return error_of_event(trellis_event_synchronize(e->event()), *e);
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return guarded([&] {
    const auto e = events().use(event);
    return error_of_event(trellis_event_query(e->event()), *e);
  });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return guarded([&] {
    if (milliseconds == nullptr) return cudaErrorInvalidValue;
    const auto from = events().use(start), to = events().use(end);
    if (!from->recorded() || !to->recorded()) return cudaErrorInvalidResourceHandle;
    if (trellis_event_query(from->event()) != TRELLIS_OK || trellis_event_query(to->event()) != TRELLIS_OK)
      return cudaErrorNotReady;
    if (from->dropped() || to->dropped()) return cudaErrorLaunchFailure;
    *milliseconds = std::chrono::duration<float, std::milli>(to->reached() - from->reached()).count();
    return cudaSuccess;
  });
}
