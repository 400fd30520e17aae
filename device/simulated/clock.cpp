#include "device/simulated/clock.h"

#include <utility>

namespace trellis::device {
namespace {

thread_local SimulatedClock* working_for = nullptr;
thread_local int taken_over = 0;

}  // namespace

SimulatedClock& SimulatedClocks::current() const { return working_for != nullptr ? *working_for : callers_; }

void SimulatedClocks::charge(Time t) {
  if (taken_over == 0) current().add(t);
}

void SimulatedClocks::take_over(bool begins) { taken_over += begins ? 1 : -1; }

SimulatedClocks::Working::Working(SimulatedClock& clock) : before_(std::exchange(working_for, &clock)) {}
SimulatedClocks::Working::~Working() { working_for = before_; }

SimulatedStream::SimulatedStream(std::shared_ptr<SimulatedClocks> clocks) : clocks_(std::move(clocks)) {
  clock_->reach(clocks_->current().now());
}

// Work cannot begin before the moment at which it was handed in.
void SimulatedStream::submit(std::function<void()> work) {
  thread_.submit([work = std::move(work), clock = clock_, handed_in = clocks_->current().now()] {
    const SimulatedClocks::Working working(*clock);
    clock->reach(handed_in);
    work();
  });
}

void SimulatedStream::synchronize() {
  thread_.synchronize();
  clocks_->wait_until(clock_->now());
}

}  // namespace trellis::device
