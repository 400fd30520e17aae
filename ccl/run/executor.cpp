#include "ccl/run/executor.h"

#include <utility>

#include "ccl/failure/blame.h"
#include "ccl/failure/mismatch.h"

namespace trellis::ccl {
namespace {

using schedule::Op;

constexpr int patient_looks = 16;                     // polls when only one lane is left; a fraction of a microsecond
constexpr std::size_t large = std::size_t{32} << 10;  // messages above this may need room that a receiver grants

}  // namespace

Executor::Executor(Transport& transport, FamilyMember& family, const FlightRecorder& past, device::Device& device,
                   std::chrono::milliseconds timeout)
    : transport_(transport),
      family_(family),
      past_(past),
      device_(device),
      timeout_(timeout),
      rounder_(device),
      watch_(timeout) {
  watch_.expect(transport.ranks());
  if (AllToAllExchange* const rounds = transport.rounds())
    all_to_all_.emplace(*rounds, steps_, RoundRunner::Use{take_whole, sum, this});
}

// Turns an error about one message, which a lane's sender or receiver throws, into one about the operation.
template <class Function>
void Executor::explaining(Function&& f) {
  try {
    f();
  } catch (const MessageMismatch& m) {
    explain(transport_, past_, *bound_->activity, m);
  } catch (const MessageDamaged& d) {
    explain(transport_, *bound_->activity, d);
  } catch (const MessageWithdrawn& w) {
    explain(transport_, *bound_->activity, w);
  }
}

void Executor::begin(const BoundProgram& bound) {
  const CompiledProgram& c = *bound.compiled;
  bound_ = &bound;
  rounded_ = bound.rounds();
  if (rounded_) rounder_.begin(bound);
  steps_.begin(c);
  native_ = bound.native;
  waiting_ = shown_ = false;
  watch_.restart();
  live_.clear();
  if (c.rounds.empty()) return begin_lines(c);
  all_to_all_->begin(bound);
  transport_.show(*bound.activity);
  explaining([&] { all_to_all_->advance(); });
}

void Executor::begin_lines(const CompiledProgram& c) {
  fronts_.resize(c.lines.size());
  Front* front = fronts_.data();
  for (const LaneMessages& line : c.lines) {
    front->line = &line;
    front->next = 0;
    front->begun = false;
    front->receiver = line.receives ? &transport_.receiver(line.peer, line.lane) : nullptr;
    front->sender = line.receives ? nullptr : &transport_.sender(line.peer, line.lane);
    ++front;
  }
  transport_.show(*bound_->activity);
  // Starts small messages only. Large ones start in move(), after this rank's grants for the others' messages, which
  // would otherwise wait behind them in a TCP connection.
  explaining([&] {
    for (Front& f : fronts_)
      if (f.sender != nullptr && bytes_of(next_of(f)) <= large) advance(f);
  });
  for (std::uint32_t i = 0; i < fronts_.size(); ++i)
    if (fronts_[i].next != fronts_[i].line->count) live_.push_back(i);
}

bool Executor::move_messages() {
  if (!bound_->compiled->rounds.empty()) return all_to_all_->advance();
  bool moved = false;
  for (std::size_t i = 0; i < live_.size();) {
    Front& front = fronts_[live_[i]];
    moved |= advance(front);
    if (front.next != front.line->count) {
      ++i;
      continue;
    }
    live_[i] = live_.back();
    live_.pop_back();
  }
  return moved;
}

bool Executor::move() {
  bool moved = steps_.has_local();
  if (native_ != nullptr && native_->done()) {
    native_ = nullptr;
    moved = true;
  }
  while (steps_.has_local()) {
    const std::uint32_t step = steps_.next_local();
    run_local(step);
    steps_.finish(step);
  }
  explaining([&] { moved |= move_messages(); });
  if (moved && std::exchange(waiting_, false)) family_.rests();
  return moved;
}

void Executor::idle(std::uint32_t times, std::chrono::microseconds most) {
  if (transport_.wait(times, most)) look_around();
}

void Executor::end() {
  if (rounded_) rounder_.end();
  family_.rests();
}

// True when a piece has moved.
bool Executor::advance(Front& front) {
  bool moved = false;
  while (front.next < front.line->count) {
    const std::uint32_t step = next_of(front);
    if (steps_.waits(step)) return moved;
    if (!front.begun && start(front, step)) {
      moved = true;
      continue;
    }
    front.receiving.looks = live_.size() == 1 ? patient_looks : 1;
    const std::size_t before = front.line->receives ? front.receiving.done : front.sending.done;
    const bool done =
        front.line->receives ? front.receiver->advance(front.receiving) : front.sender->advance(front.sending);
    if (!done) return moved || (front.line->receives ? front.receiving.done : front.sending.done) != before;
    front.begun = false;
    ++front.next;
    moved = true;
    steps_.finish(step);
  }
  return moved;
}

std::uint32_t Executor::next_of(const Front& front) const {
  return bound_->compiled->messages[front.line->first + front.next];
}

std::size_t Executor::bytes_of(std::uint32_t step) const {
  const CompiledStep& flat = bound_->compiled->steps[step];
  return (schedule::sends(flat.op) ? flat.from : flat.to).elements * kernels::size_of(bound_->wire);
}

// Starts the lane's next message. True: it is empty, and done without a transfer, as both ends know from the plan.
bool Executor::start(Front& front, std::uint32_t step) {
  const CompiledStep& flat = bound_->compiled->steps[step];
  const std::size_t bytes = bytes_of(step);
  if (bytes == 0 && !bound_->tokens) {
    ++front.next;
    steps_.finish(step);
    return true;
  }
  front.begun = true;
  if (!front.line->receives) {
    front.sending = {.data = bound_->at(flat.from), .bytes = bytes, .mark = bound_->mark + flat.mark};
    if (bound_->narrows()) {
      front.sending.producer = &producer_;
      front.sending.message = step;
    }
    return false;
  }
  front.receiving = {.consumer = {take, this, step},
                     .place = flat.op == Op::recv && !bound_->narrows() ? bound_->at(flat.to) : nullptr,
                     .bytes = bytes,
                     .mark = bound_->mark + flat.mark};
  return false;
}

void Executor::run_local(std::uint32_t step) {
  const CompiledStep& flat = bound_->compiled->steps[step];
  const BufferRange* const further = bound_->compiled->places.data() + flat.further;
  if (flat.to.elements == 0) return;
  if (rounded_) return rounder_.local(step);
  if (flat.op == Op::copy) {
    const std::size_t bytes = flat.to.elements * kernels::size_of(bound_->type);
    device_.copy(bound_->at(flat.to), bound_->at(flat.from), bytes, bound_->how.stores);
    for (std::uint32_t i = 0; i < flat.further_count; ++i)
      device_.copy(bound_->at(further[i]), bound_->at(flat.from), bytes, bound_->how.stores);
    return;
  }
  sources_.assign(1, bound_->at(flat.from));
  for (std::uint32_t i = 0; i < flat.further_count; ++i) sources_.push_back(bound_->at(further[i]));
  device_.reduce(bound_->op, bound_->type, sources_, bound_->at(flat.to), flat.to.elements, bound_->how);
}

void Executor::take(void* self, std::uint32_t step, std::size_t offset, const std::byte* piece, std::size_t bytes) {
  auto& executor = *static_cast<Executor*>(self);
  if (bytes == 0) return;
  if (executor.rounded_) return executor.rounder_.take(step, offset, piece, bytes);
  executor.take_piece(executor.bound_->compiled->steps[step], offset, piece, bytes);
}

void Executor::take_whole(void* self, std::uint32_t step, const std::byte* message) {
  auto& executor = *static_cast<Executor*>(self);
  const CompiledStep& flat = executor.bound_->compiled->steps[step];
  if (flat.to.elements == 0) return;
  executor.take_piece(flat, 0, message, flat.to.elements * kernels::size_of(executor.bound_->type));
}

void Executor::sum(void* self, std::uint32_t step, std::span<const void* const> sources) {
  auto& executor = *static_cast<Executor*>(self);
  const BoundProgram& b = *executor.bound_;
  const BufferRange& to = b.compiled->steps[step].to;
  if (to.elements != 0) executor.device_.reduce(b.op, b.type, sources, b.at(to), to.elements, b.how);
}

void Executor::take_piece(const CompiledStep& flat, std::size_t offset, const std::byte* piece, std::size_t bytes) {
  std::byte* const to = bound_->at(flat.to) + offset;
  if (flat.op == Op::recv) return device_.copy(to, piece, bytes, bound_->how.stores);
  const void* const sources[] = {bound_->at(flat.from) + offset, piece};
  device_.reduce(bound_->op, bound_->type, sources, to, bytes / kernels::size_of(bound_->type), bound_->how);
}

void Executor::make(void* self, std::uint32_t step, std::size_t offset, std::byte* piece, std::size_t bytes) {
  static_cast<Executor*>(self)->rounder_.send(step, offset, piece, bytes);
}

std::optional<RoundRunner::Wait> Executor::stuck() const {
  if (!bound_->compiled->rounds.empty()) return all_to_all_->waits_for();
  std::optional<RoundRunner::Wait> sends;
  for (const std::uint32_t i : live_) {
    const Front& f = fronts_[i];
    if (!f.begun) continue;
    const RoundRunner::Wait wait{next_of(f), f.line->peer};
    if (f.line->receives) return wait;
    if (!sends) sends = wait;
  }
  return sends;
}

Rank Executor::unfinished_in_native() const {
  Rank in_it = -1;
  for (Rank r = 0; r < transport_.ranks(); ++r) {
    if (r == transport_.rank()) continue;
    const RankActivity theirs = transport_.activity(r);
    if (theirs.operation < bound_->activity->operation) return r;
    if (in_it < 0 && theirs.operation == bound_->activity->operation && theirs.running) in_it = r;
  }
  return in_it;
}

std::vector<PendingMessage> Executor::pending() const {
  if (!bound_->compiled->rounds.empty()) return all_to_all_->pending();
  std::vector<PendingMessage> all;
  for (const std::uint32_t i : live_) {
    const Front& f = fronts_[i];
    if (f.begun)
      all.push_back({f.line->peer, f.line->receives, f.line->receives ? f.receiving.bytes : f.sending.bytes});
  }
  return all;
}

bool Executor::never_comes(Deadline now) const {
  const bool counted =
      static_cast<schedule::Collective>(bound_->activity->collective) != schedule::Collective::send_recv;
  return counted && now - waiting_since_ > timeout_ / 8 &&
         watch_.longest_absence(transport_, bound_->activity->operation, now) > timeout_;
}

void Executor::look_around() {
  const Deadline now = Clock::now();
  RankActivity& mine = *bound_->activity;
  const std::uint64_t arrivals = transport_.arrivals();
  const bool arrive = std::exchange(arrivals_, arrivals) != arrivals;
  const WaitProgress news{.begun = !std::exchange(shown_, true), .moved = !std::exchange(waiting_, true) || arrive};
  if (news.begun) ++mine.waits;
  if (news.moved) {
    waiting_since_ = now;
    watch_.data_moved(now);
    ++mine.moves;
  }
  const auto away = away_for(now, watch_.absence(), waiting_since_);
  waiting_since_ += away;
  watch_.excuse(away);
  if (const auto wait = stuck()) {
    mine.step = bound_->compiled->steps[wait->step].origin;
    mine.waits_for = wait->peer;
  } else if (native_ != nullptr) {
    mine.waits_for = unfinished_in_native();
  }
  const bool own_device = native_ != nullptr && mine.waits_for < 0;
  ++mine.heartbeat;
  transport_.show(mine);
  family_.waits_for(own_device ? transport_.rank() : mine.waits_for, news);
  watch_.look(transport_, now);
  heed_interruption(transport_, mine);
  const auto waited = now - waiting_since_;
  check_health(transport_, past_, mine, waited);
  if (all_to_all_ && bound_->one_mark && counted(mine))
    check_paths(transport_, past_, mine, !bound_->compiled->rounds.empty());
  if (waited > timeout_ || never_comes(now)) give_up(transport_, past_, family_, watch_, mine, timeout_, waited);
}

}  // namespace trellis::ccl
