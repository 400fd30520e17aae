// Interleaved 1F1B: each of P ranks has V stages, P stages apart. Forward pass k is of stage (k mod PV) / P here and
// micro-batch P (k / PV) + k mod P; backward passes the same from the last stage down. After a computation come the
// messages of what follows (receives) and of what was made (sends), in an order that depends on the rank's place.
#include <algorithm>
#include <array>
#include <optional>

#include "train/pipeline/schedule.h"

namespace trellis::train {
namespace {

// The order of messages between two computations. usual: the last rank sends forward first; the others first receive
// forward and send backward. even_odd: ranks of one parity send while the others receive.
enum class Order : std::uint8_t { usual, even_odd };

class Rank {
 public:
  Rank(const PipelineShape& shape, std::int32_t rank, std::int32_t warm, Order order)
      : shape_(shape), rank_(rank), warm_(warm), order_(order), all_(shape.micro_batches * shape.chunks) {}

  std::vector<Slot> slots() {
    receive_forward(0);
    for (std::int32_t k = 0; k < warm_; ++k) {
      compute(Action::forward, k);
      exchange(k, k + 1, std::nullopt, k + 1 == warm_ ? std::optional(0) : std::nullopt);
    }
    if (warm_ == 0) receive_backward(0);
    for (std::int32_t k = 0; k < all_ - warm_; ++k) {
      compute(Action::forward, warm_ + k);
      compute(Action::backward, k);
      exchange(warm_ + k, warm_ + k + 1, k, k + 1);
    }
    for (std::int32_t k = all_ - warm_; k < all_; ++k) {
      compute(Action::backward, k);
      exchange(std::nullopt, std::nullopt, k, k + 1);
    }
    return std::move(slots_);
  }

 private:
  Slot slot(Action action, std::int32_t k, bool back) const {
    const std::int32_t round = shape_.ranks * shape_.chunks, chunk = k % round / shape_.ranks;
    return {action, shape_.ranks * (k / round) + k % round % shape_.ranks, back ? shape_.chunks - 1 - chunk : chunk};
  }
  void compute(Action action, std::int32_t k) { slots_.push_back(slot(action, k, action == Action::backward)); }

  bool first(const Slot& s) const { return rank_ == 0 && s.chunk == 0; }
  bool last(const Slot& s) const { return rank_ + 1 == shape_.ranks && s.chunk + 1 == shape_.chunks; }

  void receive_forward(std::optional<std::int32_t> k) {
    if (k && *k < all_)
      if (const Slot s = slot(Action::receive_forward, *k, false); !first(s)) slots_.push_back(s);
  }
  void receive_backward(std::optional<std::int32_t> k) {
    if (k && *k < all_)
      if (const Slot s = slot(Action::receive_backward, *k, true); !last(s)) slots_.push_back(s);
  }
  void send_forward(std::optional<std::int32_t> k) {
    if (k)
      if (const Slot s = slot(Action::send_forward, *k, false); !last(s)) slots_.push_back(s);
  }
  void send_backward(std::optional<std::int32_t> k) {
    if (k)
      if (const Slot s = slot(Action::send_backward, *k, true); !first(s)) slots_.push_back(s);
  }

  // Adds the messages between two computations. made and back: the forward and the backward pass that this rank has
  // computed; next and next_back: those that it will compute.
  void exchange(std::optional<std::int32_t> made, std::optional<std::int32_t> next, std::optional<std::int32_t> back,
                std::optional<std::int32_t> next_back) {
    const bool even = rank_ % 2 == 0;
    if (order_ == Order::even_odd) {
      if (even) return receive_forward(next), send_forward(made), send_backward(back), receive_backward(next_back);
      return send_forward(made), receive_forward(next), receive_backward(next_back), send_backward(back);
    }
    if (rank_ + 1 == shape_.ranks)
      return send_forward(made), receive_backward(next_back), receive_forward(next), send_backward(back);
    receive_forward(next), send_backward(back), send_forward(made), receive_backward(next_back);
  }

  PipelineShape shape_;
  std::int32_t rank_, warm_;
  Order order_;
  std::int32_t all_;  // the number of forward passes, and of backward ones
  std::vector<Slot> slots_;
};

PipelineSchedule make(const PipelineShape& shape) {
  PipelineSchedule s;
  s.shape = shape;
  const std::int32_t all = shape.micro_batches * shape.chunks;
  for (std::int32_t r = 0; r < shape.ranks; ++r) {
    const std::int32_t usual = std::min(2 * (shape.ranks - r - 1) + (shape.chunks - 1) * shape.ranks, all);
    const bool one_round = shape.micro_batches == shape.ranks;
    s.ranks.push_back(Rank(shape, r, one_round ? all : usual, one_round ? Order::even_odd : Order::usual).slots());
  }
  return s;
}

const RegisteredPipeline interleaved({
    .name = "interleaved",
    .what = "1F1B over several stages a rank",
    .misfit = [](const PipelineShape& s) -> std::string {
      if (s.chunks < 2) return "expected two stages a rank or more";
      if (s.ranks < 2) return "expected two ranks or more";
      if (s.micro_batches % s.ranks != 0) return "expected as many micro-batches as ranks, or a multiple";
      return "";
    },
    .make = make,
});

}  // namespace
}  // namespace trellis::train
