#include "device/neuron/wait.h"

#include <poll.h>
#include <unistd.h>

#include <thread>

namespace trellis::device {

// A handle to wait on where the runtime gives one: SDK 2.29 took it away.
void wait_for(const NeuronRuntime& runtime, nrt::Sequence sequence, std::chrono::milliseconds most) {
  const nrt::Library& l = runtime.library();
  const auto deadline = std::chrono::steady_clock::now() + most;
  if (int fd = -1;
      l.nrta_get_completion_handle != nullptr && l.nrta_get_completion_handle(sequence, &fd) == nrt::Status::success) {
    pollfd one{fd, POLLIN, 0};
    poll(&one, 1, static_cast<int>(most.count()));
    close(fd);
  }
  for (bool done = false;;) {
    runtime.call(l.nrta_is_completed, "nrta_is_completed", sequence, &done);
    if (done) return;
    if (std::chrono::steady_clock::now() > deadline) runtime.check(nrt::Status::timeout, "nrta_is_completed");
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace trellis::device
