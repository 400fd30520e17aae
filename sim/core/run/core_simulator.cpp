#include "sim/core/run/core_simulator.h"

#include <algorithm>
#include <cmath>

#include "sim/core/program/instruction_kind.h"

namespace trellis::sim::core {

const SemaphoreWait* CoreSimulator::unmet(const Stream& s, const Instruction& i) const {
  for (const SemaphoreWait& w : program_.waits_of(i)) {
    const auto value = static_cast<double>(semaphores_[static_cast<std::size_t>(w.semaphore)].value);
    if (value < w.level(s.registers.data())) return &w;
  }
  return nullptr;
}

// Starts instructions of a stream until another event comes first, then queues an event that continues.
void CoreSimulator::issue(std::uint16_t number) {
  Stream& s = streams_[number];
  Time now = queue_.now();
  while (s.next < s.order.size()) {
    const std::uint32_t at = s.order[s.next];
    const Instruction& i = program_.instructions[at];
    if (const SemaphoreWait* w = unmet(s, i)) {
      semaphores_[static_cast<std::size_t>(w->semaphore)].waiting.push_back(number);
      return;
    }
    begin(number, at, now);
    if (queue_.next() <= s.free) {
      if (s.next < s.order.size()) queue_.push(s.free, {CoreEventKind::issue, number, 0});
      return;
    }
    now = s.free;
  }
}

// When an instruction starts whose semaphores have all reached their values at `from`. Each semaphore but the first
// delays it, and so may a port that is in use and the load of Scalar's function table.
Time CoreSimulator::start_of(Stream& s, const Instruction& i, const Prepared& p, Time from, WaitReason& why) {
  Time start = from;
  if (i.waits.count > 1) start += (i.waits.count - 1) * chip_.semaphore_instruction;
  const auto take = [&](Time& port) {
    if (port > start) {
      start = port;
      why = WaitReason::port;
    }
    port = start + p.cost.interval;
  };
  if (p.table >= 0 && p.table != s.table) {
    start += chip_.table_load;
    s.table = p.table;
    why = WaitReason::data;
  }
  if (p.cost.shares_sbuf_port) take(sbuf_port_[i.core]);
  if (p.cost.shares_psum_port) take(psum_port_[i.core]);
  return start;
}

// An instruction's interval on Tensor, whose rate is limited while its array was used too little in the window before:
// at first, after a gap, and for as long as too few of its rows hold weights.
Time CoreSimulator::limited(Stream& s, const Prepared& p, Time start) const {
  const TensorSpec& t = chip_.tensor;
  const Time since = start - t.ramp;
  const auto work = [](const ArrayWork& w, Time from) { return static_cast<double>(w.end - from) * w.rows; };
  for (; !s.recent.empty() && s.recent.front().end <= since; s.recent.pop_front())
    s.recent_work -= work(s.recent.front(), s.recent.front().start);
  double used = s.recent_work;
  if (!s.recent.empty() && s.recent.front().start < since)
    used += work(s.recent.front(), since) - work(s.recent.front(), s.recent.front().start);
  const double rate = used < t.ramp_least * static_cast<double>(t.ramp) * t.rows ? t.ramp_rate : 1;
  const auto interval = static_cast<Time>(static_cast<double>(p.cost.interval) / rate);
  s.recent.push_back({start, start + interval, p.rows * rate});
  s.recent_work += work(s.recent.back(), start);
  return interval;
}

void CoreSimulator::begin(std::uint16_t number, std::uint32_t at, Time from) {
  Stream& s = streams_[number];
  const Instruction& i = program_.instructions[at];
  const Prepared& p = prepared_[at];
  WaitReason why = from > s.free ? s.why : WaitReason::none;
  const Time start = start_of(s, i, p, from, why);
  if (options_.observer != nullptr) options_.observer->issued(at, s.registers.data(), start);

  const bool ramps = i.engine == Engine::tensor && chip_.tensor.ramp > 0;
  const Time interval = ramps ? limited(s, p, start) : p.cost.interval;
  const Time end = start + interval;
  const std::int64_t span = note(s, p, start, end, why);
  s.done = std::max(s.done, end + p.cost.latency - p.cost.interval);
  s.totals.busy += interval;
  s.totals.waited[static_cast<std::size_t>(why)] += start - s.free;
  ++s.totals.instructions;
  s.free = end;
  s.cause = span;
  ++s.next;
  totals_.flops += p.cost.flops;
  const BoundInstruction call(program_, i);
  const bool reads =
      i.kind->control == ControlFlow::load && options_.memory != nullptr;  // kind->run() sets the register
  if (i.kind->control != ControlFlow::none && !reads) control(s, call);
  if (i.kind->dma) return trigger(number, at, span);
  totals_.time = std::max(totals_.time, s.done);
  if (options_.memory != nullptr) compute(s.registers, call);
  if (i.signals.count != 0 || options_.observer != nullptr) finish_later(at, span, s.done + chip_.semaphore_latency);
}

std::int64_t CoreSimulator::note(Stream& s, const Prepared& p, Time start, Time end, WaitReason why) {
  if (options_.timeline == nullptr) return -1;
  return options_.timeline->add({.track = s.track,
                                 .label = p.label,
                                 .start = start,
                                 .end = end,
                                 .ready = s.free,
                                 .cause = s.cause,
                                 .wait = why,
                                 .flops = p.cost.flops});
}

void CoreSimulator::trigger(std::uint16_t number, std::uint32_t at, std::int64_t span) {
  Stream& s = streams_[number];
  const Instruction& i = program_.instructions[at];
  const DmaWork& work = works_[static_cast<std::size_t>(prepared_[at].work)];
  rings_.ask(i.core * chip_.dma.rings + i.queue, at, number, span, keep_registers(s, i), work, s.free);
  totals_.descriptors += work.descriptors;
  totals_.dma_bytes += work.bytes;
  totals_.hbm_read += work.hbm_read;
  totals_.hbm_written += work.hbm_written;
}

// Keeps a copy of the registers for a transfer that needs them, as its engine may have changed them when the transfer
// ends. Returns the copy's index in kept_; -1 if none is needed.
std::int32_t CoreSimulator::keep_registers(const Stream& s, const Instruction& i) {
  if (options_.memory == nullptr) return -1;
  const BoundInstruction call(program_, i);
  const auto indexed = [](const View& v) { return v.index >= 0; };
  if (std::ranges::none_of(call.outputs, indexed) && std::ranges::none_of(call.inputs, indexed) &&
      !call.has(Key::index))
    return -1;
  if (free_kept_.empty()) {
    kept_.push_back(s.registers);
    return static_cast<std::int32_t>(kept_.size()) - 1;
  }
  const std::int32_t place = free_kept_.back();
  free_kept_.pop_back();
  kept_[static_cast<std::size_t>(place)] = s.registers;
  return place;
}

void CoreSimulator::compute(std::vector<std::int64_t>& registers, const BoundInstruction& call) {
  if (call.instruction.kind->run == nullptr) return;
  options_.memory->use_registers(registers.data());
  call.instruction.kind->run(call, *options_.memory);
}

void CoreSimulator::finish_later(std::uint32_t at, std::int64_t span, Time when) {
  std::uint32_t number = 0;
  if (free_flights_.empty()) {
    number = static_cast<std::uint32_t>(flights_.size());
    flights_.push_back({at, span});
  } else {
    number = free_flights_.back();
    free_flights_.pop_back();
    flights_[number] = {at, span};
  }
  queue_.push(when, {CoreEventKind::finish, 0, number});
}

// Ends a transfer: adds its span to the timeline, moves its data if there is a memory, and schedules its signals, which
// come dma.done and the semaphore's latency later.
void CoreSimulator::finish(const RingTransfer& t) {
  const Instruction& i = program_.instructions[t.instruction];
  std::int64_t span = -1;
  if (options_.timeline != nullptr)
    span = options_.timeline->add({.track = ring_tracks_[static_cast<std::size_t>(i.core * chip_.dma.rings + i.queue)],
                                   .label = prepared_[t.instruction].label,
                                   .start = t.start,
                                   .end = t.end,
                                   .ready = t.asked,
                                   .cause = t.span,
                                   .wait = WaitReason::order,
                                   .bytes = works_[static_cast<std::size_t>(prepared_[t.instruction].work)].bytes});
  if (options_.memory != nullptr) {
    const bool kept = t.registers >= 0;
    compute(kept ? kept_[static_cast<std::size_t>(t.registers)] : streams_[t.stream].registers,
            BoundInstruction(program_, i));
    if (kept) free_kept_.push_back(t.registers);
  }
  totals_.time = std::max(totals_.time, t.end + chip_.dma.done);
  finish_later(t.instruction, span, queue_.now() + chip_.dma.done + chip_.semaphore_latency);
}

void CoreSimulator::finish(std::uint32_t number) {
  const Flight flight = flights_[number];
  free_flights_.push_back(number);
  if (options_.observer != nullptr) options_.observer->finished(flight.instruction, queue_.now());
  const Instruction& i = program_.instructions[flight.instruction];
  for (const SemaphoreSignal& signal : program_.signals_of(i)) {
    Semaphore& sem = semaphores_[static_cast<std::size_t>(signal.semaphore)];
    sem.value += signal.add;
    sem.cause = flight.span;
    sem.by_dma = i.kind->dma;
    if (options_.timeline != nullptr)
      options_.timeline->samples.push_back({sem.counter, queue_.now(), static_cast<double>(sem.value)});
    for (std::size_t w = 0; w < sem.waiting.size();) {
      Stream& s = streams_[sem.waiting[w]];
      const SemaphoreWait* missing = unmet(s, program_.instructions[s.order[s.next]]);
      if (missing != nullptr && missing->semaphore == signal.semaphore) {
        ++w;
        continue;
      }
      s.why = sem.by_dma ? WaitReason::data : WaitReason::semaphore;
      s.cause = sem.cause;
      queue_.push(std::max(queue_.now(), s.free), {CoreEventKind::issue, sem.waiting[w], 0});
      sem.waiting.erase(sem.waiting.begin() + static_cast<std::ptrdiff_t>(w));
    }
  }
}

void CoreSimulator::control(Stream& s, const BoundInstruction& call) {
  const auto target = static_cast<std::size_t>(call.number(Key::target));
  switch (call.instruction.kind->control) {
    case ControlFlow::loop:
      s.registers[target] = register_number(call.number(Key::start));
      s.loops.push_back({s.next, register_number(call.number(Key::count)) - 1, call.number(Key::step, 1), target});
      return;
    case ControlFlow::end_loop: {
      Loop& loop = s.loops.back();
      if (loop.left-- == 0) return s.loops.pop_back();
      s.registers[loop.target] = register_number(static_cast<double>(s.registers[loop.target]) + std::trunc(loop.step));
      s.next = loop.first;
      return;
    }
    case ControlFlow::move:
      s.registers[target] = register_number(call.number(Key::value));
      return;
    case ControlFlow::add:
      s.registers[target] =
          register_number(static_cast<double>(s.registers[target]) + std::trunc(call.number(Key::value)));
      return;
    case ControlFlow::load:  // without memory, an attribute says what was loaded
      s.registers[target] = register_number(call.number(Key::value));
      return;
    case ControlFlow::none:
      return;
  }
}

RunTotals CoreSimulator::run() {
  for (std::size_t s = 0; s < streams_.size(); ++s)
    if (!streams_[s].order.empty()) queue_.push(0, {CoreEventKind::issue, static_cast<std::uint16_t>(s), 0});
  while (!queue_.empty()) {
    const CoreEvent e = queue_.pop();
    switch (e.what) {
      case CoreEventKind::issue:
        issue(e.unit);
        break;
      case CoreEventKind::finish:
        finish(e.number);
        break;
      case CoreEventKind::ring:
        rings_.ring_event(e.unit);
        break;
      case CoreEventKind::share:
        rings_.share_event(e.unit, e.number);
        break;
      case CoreEventKind::packet:
        for (const RingTransfer& t : rings_.packet_event(e.unit, e.number)) finish(t);
        break;
    }
  }
  for (const Stream& s : streams_)
    if (s.next < s.order.size()) fail_stuck();
  for (const Stream& s : streams_) {
    totals_.streams.push_back(s.totals);
    totals_.instructions += s.totals.instructions;
  }
  totals_.dma_busy = rings_.busy();
  totals_.dma_any = rings_.any_busy();
  if (options_.timeline != nullptr) options_.timeline->end = std::max(options_.timeline->end, totals_.time);
  return totals_;
}

RunTotals run(const NeuronCoreProgram& program, const ChipSpec& chip, const RunOptions& options) {
  return CoreSimulator(program, chip, options).run();
}

HardwarePeaks peaks_of(const ChipSpec& chip, int cores) {
  const double product =
      2.0 * chip.tensor.rows * chip.tensor.columns * chip.engine[0].clock / std::max(chip.tensor.row_cycles_wide, 1e-9);
  return {.flops_per_second = product * cores,
          .roofs = {{"HBM, one stack", chip.memory.hbm_rate / chip.memory.hbm_stacks},
                    {"DMA engines", chip.dma.engine_rate * chip.dma.engines * cores}}};
}

}  // namespace trellis::sim::core
