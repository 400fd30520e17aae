#include <chrono>

#include "ccl/api/cuda/streams.h"
#include "ccl/api/handles.h"
#include "device/of_this_process.h"

using namespace trellis::cuda;

namespace {

using Time = std::chrono::steady_clock;

// An event of CUDA tells the time too.
class Event {
 public:
  Event() { created_ = trellis_event_create(&event_); }
  ~Event() { trellis_event_destroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  trellis_result created() const { return created_; }
  trellis_event event() const { return event_; }
  bool recorded() const { return recorded_; }
  Time::time_point reached() const { return reached_; }

  static trellis_result record(const std::shared_ptr<Event>& event, trellis_stream stream) {
    auto* kept = new std::shared_ptr<Event>(event);
    const auto note = [](void* argument) {
      auto* e = static_cast<std::shared_ptr<Event>*>(argument);
      (*e)->reached_ = Time::now();
      delete e;
    };
    if (const trellis_result called = trellis_stream_call(stream, note, kept); called != TRELLIS_OK) {
      delete kept;
      return called;
    }
    event->recorded_ = true;
    return trellis_event_record(event->event_, stream);
  }

 private:
  trellis_event event_ = nullptr;
  trellis_result created_;
  std::atomic<bool> recorded_ = false;
  std::atomic<Time::time_point> reached_ = Time::time_point{};
};

trellis::ccl::api::Handles<Event>& events() {
  return trellis::device::of_this_process([] { return new trellis::ccl::api::Handles<Event>(0x7C05, "cudaEvent_t"); });
}

template <class Body>
cudaError_t guarded(Body&& body) noexcept {
  try {
    return noted(body());
  } catch (const std::invalid_argument&) {
    return noted(cudaErrorInvalidResourceHandle);
  } catch (const std::bad_alloc&) {
    return noted(cudaErrorMemoryAllocation);
  } catch (...) {
    return noted(cudaErrorUnknown);
  }
}

// Of a function on a stream: what it takes as wrong is the handle.
cudaError_t stream_error_of(trellis_result result) {
  return result == TRELLIS_INVALID_ARGUMENT ? cudaErrorInvalidResourceHandle : error_of(result);
}

}  // namespace

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return guarded([&] {
    if (stream == nullptr || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    trellis_stream made = nullptr;
    const trellis_result created = trellis_stream_create(&made);
    *stream = reinterpret_cast<cudaStream_t>(made);
    if (created == TRELLIS_OK) streams().add(made, flags == cudaStreamDefault);
    return error_of(created);
  });
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return guarded([&] {
    if (stream_of(stream) == nullptr) return cudaErrorInvalidResourceHandle;
    streams().remove(stream_of(stream));
    return stream_error_of(trellis_stream_destroy(stream_of(stream)));
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return guarded([&] {
    const trellis_stream own = stream_of(stream);
    if (own == nullptr) return streams().synchronize(true);
    if (trellis_stream_query(own) == TRELLIS_INVALID_ARGUMENT) return cudaErrorInvalidResourceHandle;
    return trellis_stream_synchronize(own) == TRELLIS_OK ? cudaSuccess : cudaErrorLaunchFailure;
  });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return guarded([&] { return stream_error_of(trellis_stream_query(stream_of(stream))); });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  return guarded([&] { return stream_error_of(trellis_stream_wait(stream_of(stream), events().use(event)->event())); });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* userData) {
  return guarded([&] {
    if (function == nullptr) return cudaErrorInvalidValue;
    return stream_error_of(trellis_stream_call(stream_of(stream), function, userData));
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
  return guarded([&] { return stream_error_of(Event::record(events().use(event).share(), stream_of(stream))); });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return guarded([&] { return error_of(trellis_event_synchronize(events().use(event)->event())); });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return guarded([&] { return error_of(trellis_event_query(events().use(event)->event())); });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return guarded([&] {
    if (milliseconds == nullptr) return cudaErrorInvalidValue;
    const auto from = events().use(start), to = events().use(end);
    if (!from->recorded() || !to->recorded()) return cudaErrorInvalidResourceHandle;
    if (trellis_event_query(from->event()) != TRELLIS_OK || trellis_event_query(to->event()) != TRELLIS_OK)
      return cudaErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(to->reached() - from->reached()).count();
    return cudaSuccess;
  });
}
