#include "ccl/run/operation_batch.h"

#include <algorithm>
#include <utility>

#include "ccl/failure/end_for_all.h"

namespace trellis::ccl {
namespace {

// Ends the communicator, whose ticket lock this thread holds, with a failure that no call returns. If it has failed
// already, it keeps that failure. The other ranks wait for operations that never start, so they are told why.
void end(Communicator::State& state, const std::exception_ptr& why, bool elsewhere) {
  try {
    state.failure.check_health();
  } catch (...) {
    return;
  }
  if (!is_found_by_all(why)) state.failure.tell(why, elsewhere);
  state.failure.fail(why);
}

}  // namespace

void OperationBatch::add(Communicator::State& state, SendRecv&& point, device::Stream* stream) {
  send_recvs_.push_back({&state, point});
  use(stream);
}

void OperationBatch::add(Communicator::State& state, CheckedCall&& operation, device::Stream* stream) {
  operations_.push_back({&state, std::move(operation)});
  use(stream);
}

void OperationBatch::use(device::Stream* stream) {
  if (stream != nullptr && std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(stream);
}

void OperationBatch::forget(const Communicator::State* state) {
  std::erase_if(send_recvs_, [&](const auto& one) { return one.state == state; });
  std::erase_if(operations_, [&](const auto& one) { return one.state == state; });
}

device::Device& OperationBatch::device() const {
  return *(send_recvs_.empty() ? operations_.front().state : send_recvs_.front().state)->device;
}

void OperationBatch::take_turn(Communicator::State* state) {
  if (std::ranges::find(parts_, state, &Part::state) == parts_.end())
    parts_.push_back({{.state = state}, this, state->ticket_queue, state->tickets.take()});
}

void OperationBatch::take_turns() {
  for (const auto& one : send_recvs_) take_turn(one.state);
  for (const auto& one : operations_) take_turn(one.state);
  for (const Part& s : parts_) {
    own_.clear();
    for (const auto& one : send_recvs_)
      if (one.state == s.state && one.what.from == one.what.to) own_.push_back(one.what);
    check_own(own_, s.state->rank());
  }
}

void OperationBatch::hand_to_stream() { on_stream_ = awaited_ = true; }

// Work that a stream of this rank drops after an earlier failure is not dropped on the other ranks, so they are told
// first. Dumps, which may take long, are written after that; where an operation that was called before is still
// running, that operation writes the dump.
void OperationBatch::end_dropped() {
  const auto why = std::make_exception_ptr(
      Aborted("an operation of the communicator was not begun: what its stream held before has failed"));
  std::vector<std::pair<const Part*, Communicator::State::End>> ended;
  for (const Part& s : parts_)
    if (!s.state->failure.failed() && !s.state->transport->over()) ended.emplace_back(&s, s.state->end(why));
  for (const auto& [s, end] : ended) s->state->dump(end, s->tickets->has_come(s->turn));
}

void OperationBatch::clear() {
  if (std::exchange(awaited_, false)) try {
      end_dropped();
    } catch (...) {  // the other ranks hear of it at their timeout
    }
  on_stream_ = false;
  for (const Part& s : parts_) s.tickets->done(s.turn);
  parts_.clear();
  send_recvs_.clear();
  operations_.clear();
  streams_.clear();
}

bool OperationBatch::begin_next(Part& s) {
  if (!std::exchange(s.has_met_points, true)) {
    std::vector<SendRecv>& gathered = s.state->gathered;
    gathered.clear();
    for (const auto& [state, point] : send_recvs_)
      if (state == s.state) gathered.push_back(point);
    if (!gathered.empty()) {
      s.state->open(gathered);
      return s.open = true;
    }
  }
  for (; s.next != operations_.size(); ++s.next) {
    const auto& [state, operation] = operations_[s.next];
    if (state != s.state) continue;
    if (s.begin(operation.call, operation.in_place, operation.planned.get())) ++s.next;
    return true;
  }
  return false;
}

bool OperationBatch::Part::open_next() {
  try {
    return batch->begin_next(*this);
  } catch (...) {
    if (batch->on_stream_) end(*state, std::current_exception(), false);
    throw;
  }
}

void OperationBatch::end_unbegun() {
  for (const Part& s : parts_)
    if (!s.open && !s.over()) end(*s.state, std::current_exception(), true);
}

void OperationBatch::run() {
  awaited_ = false;
  for (const Part& s : parts_) s.tickets->wait(s.turn);
  try {
    run_strands(std::span(parts_));
  } catch (...) {
    if (on_stream_) end_unbegun();
    throw;
  }
}

}  // namespace trellis::ccl
