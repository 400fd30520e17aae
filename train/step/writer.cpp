#include "train/step/writer.h"

#include <fmt/format.h>

#include <utility>

namespace trellis::train {

TensorId Writer::tensor(std::string name, DType type, std::size_t rows, std::size_t columns, Category category) {
  if (!scope_.empty() && !lasting(category)) name = scope_ + "." + name;
  program_.tensors.push_back({std::move(name), type, rows, columns, category});
  return static_cast<TensorId>(program_.tensors.size() - 1);
}

TensorId Writer::bounded(std::string name, DType type, std::size_t most_rows, std::size_t columns) {
  const TensorId t = tensor(std::move(name), type, most_rows, columns);
  program_.tensors.back().bounded = true;
  return t;
}

Operation Writer::made(std::string_view name, Operation::Kind kind) const {
  Operation o;
  o.kind = kind, o.phase = phase_;
  o.name = scope_.empty() ? std::string(name) : fmt::format("{}.{}", scope_, name);
  return o;
}

void Writer::compute(std::string_view name, std::vector<TensorId> reads, std::vector<TensorId> writes, double flops,
                     schedule::OperationShape shape, Run run, double model_part) {
  if (phase_ == Phase::forward && (shape.kind == "product" || shape.kind == "attention"))
    model_flops_ += flops * model_part;
  Operation o = made(name, Operation::Kind::compute);
  o.reads = std::move(reads), o.writes = std::move(writes), o.flops = flops, o.shape = std::move(shape),
  o.run = std::move(run);
  program_.operations.push_back(std::move(o));
  flops_ += flops;
}

void Writer::add_exchange(Operation& o, Exchange&& e) const {
  for (const Transfer& t : e.transfers) {
    if (t.from.tensor != no_tensor) o.reads.push_back(t.from.tensor);
    if (t.to.tensor != no_tensor) o.writes.push_back(t.to.tensor);
  }
  for (const TensorId rows : {e.sent.rows, e.received.rows})
    if (rows != no_tensor) o.reads.push_back(rows);
  o.exchange = std::move(e);
}

void Writer::exchange(std::string_view name, Exchange e) {
  Operation o = made(name, Operation::Kind::exchange);
  add_exchange(o, std::move(e));
  program_.operations.push_back(std::move(o));
}

int Writer::begin(std::string_view name, Exchange e) {
  const int ticket = ticket_ahead();
  begin_ahead(name, std::move(e), ticket);
  return ticket;
}

int Writer::ticket_ahead() {
  begun_.push_back(0);
  return static_cast<int>(begun_.size());
}

void Writer::begin_ahead(std::string_view name, Exchange e, int ticket) {
  Operation o = made(name, Operation::Kind::exchange);
  begun_.at(static_cast<std::size_t>(ticket - 1)) = program_.operations.size();
  o.ticket = ticket;
  add_exchange(o, std::move(e));
  program_.operations.push_back(std::move(o));
}

void Writer::wait_ahead(std::string_view name, int ticket, Axis axis, std::vector<TensorId> results) {
  Operation o = made(name, Operation::Kind::wait);
  o.ticket = ticket, o.ahead = true, o.writes = std::move(results), o.exchange.axis = axis;
  program_.operations.push_back(std::move(o));
}

void Writer::wait(int ticket) {
  Operation o = made("wait", Operation::Kind::wait);
  o.ticket = ticket;
  const Operation& begun = program_.operations[begun_.at(static_cast<std::size_t>(ticket - 1))];
  o.name = begun.name + ".wait", o.reads = begun.reads, o.writes = begun.writes;
  o.exchange.axis = begun.exchange.axis;
  program_.operations.push_back(std::move(o));
}

void Writer::all_reduce(std::string_view name, Axis axis, TensorId t, kernels::Reduction reduction) {
  const Tensor& whole = tensor(t);
  exchange(name, {.kind = Exchange::Kind::all_reduce,
                  .axis = axis,
                  .reduction = reduction,
                  .transfers = {{{t, 0}, {t, 0}, whole.elements(), whole.type}}});
}

void Writer::reduce_scatter(std::string_view name, Axis axis, TensorId from, TensorId to) {
  exchange(name, {.kind = Exchange::Kind::reduce_scatter,
                  .axis = axis,
                  .transfers = {{{from, 0}, {to, 0}, tensor(to).elements(), tensor(to).type}}});
}

void Writer::all_gather(std::string_view name, Axis axis, TensorId from, TensorId to) {
  exchange(name, {.kind = Exchange::Kind::all_gather,
                  .axis = axis,
                  .transfers = {{{from, 0}, {to, 0}, tensor(from).elements(), tensor(from).type}}});
}

void Writer::all_to_all(std::string_view name, Axis axis, TensorId from, TensorId to, std::size_t calls) {
  const Tensor& whole = tensor(from);
  const auto ranks = static_cast<std::size_t>(size_of(shape_, axis));
  const std::size_t each = whole.elements() / calls;
  Exchange e{.kind = Exchange::Kind::all_to_all, .axis = axis};
  for (std::size_t i = 0; i < calls; ++i)
    e.transfers.push_back({{from, i * each}, {to, i * each}, each / ranks, whole.type});
  exchange(name, std::move(e));
}

void Writer::send(std::string_view name, Rank peer, TensorId t, int label) {
  exchange(name, {.kind = Exchange::Kind::send,
                  .axis = Axis::pipeline,
                  .peer = peer,
                  .label = label,
                  .transfers = {{{t, 0}, {}, tensor(t).elements(), tensor(t).type}}});
}

void Writer::receive(std::string_view name, Rank peer, TensorId t, int label) {
  exchange(name, {.kind = Exchange::Kind::receive,
                  .axis = Axis::pipeline,
                  .peer = peer,
                  .label = label,
                  .transfers = {{{}, {t, 0}, tensor(t).elements(), tensor(t).type}}});
}

void Writer::weight_gradient(std::function<void(Writer&)> write) {
  if (!held_) return write(*this);
  waiting_.push_back([scope = scope_, write = std::move(write)](Writer& w) {
    const Scope again(w, scope);
    write(w);
  });
}

std::vector<std::function<void(Writer&)>> Writer::held() {
  held_ = false;
  return std::exchange(waiting_, {});
}

}  // namespace trellis::train
