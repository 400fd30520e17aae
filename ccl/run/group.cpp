#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ccl/group.h"
#include "ccl/run/operation_batch.h"

namespace trellis::ccl {
namespace {

// Per-thread state. Every call reads it, so it uses the initial-exec TLS model and has no destructor: access needs no
// function call.
[[gnu::tls_model("initial-exec")]] constinit thread_local int depth = 0;
[[gnu::tls_model("initial-exec")]] constinit thread_local OperationBatch* noted =
    nullptr;  // of the open or the next group
struct Owner {
  std::unique_ptr<OperationBatch> batch;
  ~Owner() { noted = nullptr; }  // communicators may be destroyed later
};
thread_local Owner owner;

struct Outcome {
  bool begun = false;
  std::exception_ptr failed = nullptr;
};

// The first stream does the work. The other streams wait for it, and it waits for the work that they held before. If it
// fails, all of them fail.
void submit(std::unique_ptr<OperationBatch> batch) {
  device::Stream* const stream = batch->streams().front();
  const std::vector<device::Stream*> others(batch->streams().begin() + 1, batch->streams().end());
  device::Device& device = batch->device();
  for (device::Stream* other : others) {
    const auto before = device.event();
    before->record(other);
    before->wait(stream);
  }
  const auto outcome = std::make_shared<Outcome>();
  batch->hand_to_stream();
  stream->submit([batch = std::shared_ptr<OperationBatch>(std::move(batch)), outcome]() mutable {
    const auto mine = std::move(batch);  // gives its tickets back when it is done
    outcome->begun = true;
    try {
      mine->run();
    } catch (...) {
      outcome->failed = std::current_exception();
      throw;
    }
  });
  const auto after = device.event();
  after->record(stream);
  for (device::Stream* other : others) {
    after->wait(other);
    other->submit([outcome] {
      if (!outcome->begun) throw Aborted("a group was not begun: what another of its streams held before has failed");
      if (outcome->failed) std::rethrow_exception(outcome->failed);
    });
  }
}

// Runs the batch in the calling thread and leaves it empty.
void run(OperationBatch& batch) {
  struct Cleared {
    OperationBatch& batch;
    ~Cleared() { batch.clear(); }
  } const cleared{batch};
  batch.take_turns();
  batch.run();
}

// A stream that has failed would drop the batch, which would end healthy communicators. As nothing is begun, the caller
// may wait for the stream and call again.
void expect_well(const std::vector<device::Stream*>& streams) {
  if (std::ranges::any_of(streams, &device::Stream::failed))
    throw std::invalid_argument(
        "the stream takes nothing before it is synchronized, which tells how its earlier work has failed");
}

void start(std::unique_ptr<OperationBatch> batch) {
  if (batch->streams().empty()) return run(*batch);
  expect_well(batch->streams());
  batch->take_turns();
  submit(std::move(batch));
}

}  // namespace

Group::Group() {
  if (noted == nullptr) noted = (owner.batch = std::make_unique<OperationBatch>()).get();
  ++depth;
}

Group::~Group() {
  if (ended_) return;
  if (--depth == 0 && noted != nullptr) noted->clear();  // null: the thread ends within the group
}

void Group::end() {
  if (std::exchange(ended_, true)) return;
  if (--depth != 0 || noted->empty()) return;
  if (noted->streams().empty()) return run(*noted);
  noted = nullptr;
  start(std::move(owner.batch));
}

bool Group::open() { return depth != 0; }

void Group::forget(const Communicator::State& state) {
  if (noted != nullptr) noted->forget(&state);
}

template <class What>
void Group::issue(Communicator::State& state, What&& what, device::Stream* stream) {
  if (open()) return noted->add(state, std::move(what), stream);
  auto batch = std::make_unique<OperationBatch>();
  batch->add(state, std::move(what), stream);
  start(std::move(batch));
}
template void Group::issue(Communicator::State&, SendRecv&&, device::Stream*);
template void Group::issue(Communicator::State&, CheckedCall&&, device::Stream*);

}  // namespace trellis::ccl
