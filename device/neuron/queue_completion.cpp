#include "device/neuron/queue_completion.h"

#include <poll.h>
#include <unistd.h>

#include <thread>
#include <utility>

namespace trellis::device {

bool is_done(const NeuronRuntime& runtime, nrt::Sequence sequence) {
  bool done = false;
  runtime.call(runtime.library().nrta_is_completed, "nrta_is_completed", sequence, &done);
  return done;
}

// Waits on a completion handle if the runtime has them. SDK 2.29 removed them.
void wait_for(const NeuronRuntime& runtime, nrt::Sequence sequence, std::chrono::milliseconds most) {
  if (is_done(runtime, sequence)) return;
  const nrt::NrtLibrary& l = runtime.library();
  const auto deadline = std::chrono::steady_clock::now() + most;
  if (int fd = -1;
      l.nrta_get_completion_handle != nullptr && l.nrta_get_completion_handle(sequence, &fd) == nrt::Status::success) {
    pollfd one{fd, POLLIN, 0};
    poll(&one, 1, static_cast<int>(most.count()));
    close(fd);
  }
  while (!is_done(runtime, sequence)) {
    if (std::chrono::steady_clock::now() > deadline) runtime.check(nrt::Status::timeout, "nrta_is_completed");
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

QueueErrors::QueueErrors(const NeuronRuntime& r, int core) : runtime_(r) {
  r.call(r.library().nrta_error_tracker_create, "nrta_error_tracker_create", static_cast<std::uint32_t>(core),
         &tracker_);
}

QueueErrors::~QueueErrors() { runtime_.library().nrta_error_tracker_destroy(tracker_); }

void QueueErrors::check(std::string_view function) {
  const nrt::AsyncError* list = nullptr;
  std::size_t count = 0;
  const std::lock_guard lock(mutex_);
  runtime_.call(runtime_.library().nrta_error_tracker_get_list, "nrta_error_tracker_get_list", tracker_, &list, &count);
  if (count <= seen_) return;
  const std::size_t first = std::exchange(seen_, count);
  runtime_.check(static_cast<nrt::Status>(list[first].error_code), function);
}

}  // namespace trellis::device
