#include "train/step/run.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "ccl/group.h"
#include "device/noexcept_release.h"
#include "device/topology.h"
#include "kernels/types/convert.h"
#include "text/refuse.h"

namespace trellis::train {
namespace {

std::byte* shifted(void* p, const Transfer& t, std::size_t first) {
  return static_cast<std::byte*>(p) + first * kernels::size_of(t.type);
}

}  // namespace

Runner::Runner(const StepProgram& program, Communicators communicators, int threads, ParameterStorage lasting_ones)
    : program_(program),
      communicators_(std::move(communicators)),
      plan_(plan_memory(program, lasting_ones)),
      borrowed_(program.tensors.size(), nullptr),
      device_(device::host_of_process()),
      threads_(threads) {
  for (const Operation& o : program.operations) {
    if (o.kind != Operation::Kind::exchange) continue;
    if (!communicators_.contains(o.exchange.axis))
      text::refuse("{}: no communicator for axis {}", o.name, name(o.exchange.axis));
    if (o.ticket == 0) continue;
    if (!streams_.contains(o.exchange.axis)) streams_[o.exchange.axis] = device_->stream();
    begun_[o.ticket] = device_->event();
  }
  // Checked before memory is touched: if the system grants more than it has, touching a page may end the process.
  const double there = device_->topology().memory_bytes;
  if (static_cast<double>(plan_.bytes) > there)
    throw std::runtime_error(
        fmt::format("not enough memory: this rank's step takes {:.1f} GB, and this machine has {:.1f} GB; expected a "
                    "smaller model or batch, recomputation, or more ranks",
                    static_cast<double>(plan_.bytes) / 1e9, there / 1e9));
  memory_ = static_cast<std::byte*>(device_->allocate(std::max<std::size_t>(plan_.bytes, 1), "a training step"));
  std::memset(memory_, 0, plan_.bytes);
}

Runner::~Runner() {
  streams_.clear();
  begun_.clear();
  communicators_.clear();
  device::give_back(*device_, memory_);
}

void* Runner::at(TensorId t) const {
  const auto i = static_cast<std::size_t>(t);
  return borrowed_[i] != nullptr ? borrowed_[i] : memory_ + plan_.offsets[i];
}

void Runner::one(const Operation& o, const StepInputs& now) {
  if (o.kind == Operation::Kind::compute) return o.run(*this, now);
  const auto begin = std::chrono::steady_clock::now();
  if (o.kind == Operation::Kind::exchange)
    exchange(o);
  else
    wait(o);
  exchanging_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Runner::run(const StepInputs& now) {
  for (std::size_t i = 0; i < program_.operations.size(); ++i) {
    const auto begin = timed_ == nullptr ? std::chrono::steady_clock::time_point() : std::chrono::steady_clock::now();
    one(program_.operations[i], now);
    if (timed_ != nullptr) timed_->push_back({i, begin, std::chrono::steady_clock::now()});
  }
  for (const auto& [axis, stream] : streams_)
    if (stream->idle()) stream->synchronize();  // throws what a stream threw
}

void Runner::settle() {
  for (const auto& [axis, stream] : streams_) stream->synchronize();
}

Runner::Found Runner::first_not_finite(const StepInputs& now) {
  Found found;
  for (std::size_t i = 0; i < program_.operations.size(); ++i) {
    const Operation& o = program_.operations[i];
    one(o, now);
    const bool whole = o.kind != Operation::Kind::exchange || o.ticket == 0;  // else its result is there after the wait
    if (found.operation < 0 && whole && !finite(o))
      found = {static_cast<std::int64_t>(i), o.name, o.kind == Operation::Kind::compute};
  }
  return found;
}

bool Runner::finite(const Operation& o) const {
  for (TensorId id : o.writes) {
    const Tensor& t = program_.tensor(id);
    if (t.category == Category::scratch || t.category == Category::accelerator || t.bounded ||
        !kernels::is_float(t.type))
      continue;
    const auto* const bytes = static_cast<const std::byte*>(at(id));
    for (std::size_t i = 0; i < t.elements(); ++i)
      if (!std::isfinite(kernels::load(t.type, bytes + i * kernels::size_of(t.type)))) return false;
  }
  return true;
}

// An event does not report what its stream threw; synchronizing the stream does.
void Runner::wait(const Operation& o) {
  begun_.at(o.ticket)->synchronize();
  device::Stream& stream = *streams_.at(o.exchange.axis);
  if (stream.failed()) stream.synchronize();
}

void Runner::exchange(const Operation& o) {
  const Exchange& e = o.exchange;
  if (e.kind == Exchange::Kind::all_to_all_v) return exchange_uneven(o);
  ccl::Communicator& c = *communicators_.at(e.axis);
  device::Stream* const stream = o.ticket == 0 ? nullptr : streams_.at(e.axis).get();
  std::unique_ptr<ccl::Group> group;
  if (e.transfers.size() > 1 || e.kind == Exchange::Kind::shift) group = std::make_unique<ccl::Group>();
  for (const Transfer& t : e.transfers) {
    const void* const from = t.from.tensor == no_tensor ? nullptr : shifted(at(t.from.tensor), t, t.from.first);
    void* const to = t.to.tensor == no_tensor ? nullptr : shifted(at(t.to.tensor), t, t.to.first);
    const ccl::ReduceOp op{e.reduction, e.factor};
    switch (e.kind) {
      case Exchange::Kind::all_reduce:
        c.all_reduce(from, to, t.count, t.type, op, stream);
        break;
      case Exchange::Kind::reduce_scatter:
        c.reduce_scatter(from, to, t.count, t.type, op, stream);
        break;
      case Exchange::Kind::all_gather:
        c.all_gather(from, to, t.count, t.type, stream);
        break;
      case Exchange::Kind::all_to_all:
        c.all_to_all(from, to, t.count, t.type, stream);
        break;
      case Exchange::Kind::all_to_all_v:  // above
        break;
      case Exchange::Kind::shift:
        c.send(from, t.count, t.type, (c.rank() + 1) % c.ranks(), stream);
        c.recv(to, t.count, t.type, (c.rank() + c.ranks() - 1) % c.ranks(), stream);
        break;
      case Exchange::Kind::send:
        c.send(from, t.count, t.type, e.peer, stream);
        break;
      case Exchange::Kind::receive:
        c.recv(to, t.count, t.type, e.peer, stream);
        break;
    }
  }
  if (group) group->end();
  if (stream != nullptr) begun_.at(o.ticket)->record(stream);
}

}  // namespace trellis::train
