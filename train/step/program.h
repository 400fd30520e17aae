// A training step of one rank as a value: tensors, and operations on them in order. It is laid out without a byte of
// memory, then checked, run, or priced.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "schedule/graph/operation_shape.h"
#include "train/step/exchange.h"

namespace trellis::train {

// What memory is used for. Those up to `input` are kept from step to step; the others live from their first operation
// to their last. accelerator: what an accelerator holds and this machine never does, so that it has no place here.
enum class Category : std::uint8_t { parameter, gradient, master, moment, input, activation, scratch, accelerator };
inline constexpr std::size_t category_count = 8;
std::string_view name(Category);
constexpr bool lasting(Category c) { return c <= Category::input; }

// rows x columns elements, row by row.
struct Tensor {
  std::string name;
  DType type = DType::f32;
  std::size_t rows = 0, columns = 1;
  Category category = Category::activation;
  bool bounded = false;  // room for the most rows that may come; those beyond the ones that came hold nothing
  std::size_t elements() const { return rows * columns; }
  std::size_t bytes() const { return elements() * kernels::size_of(type); }
};

// What changes from one run of a step to the next.
struct StepInputs {
  std::int64_t step = 1;  // of the optimizer, counted from 1
  double learning_rate = 0;
};

// Where tensors are while a step runs.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* at(TensorId) const = 0;
  virtual int threads() const { return 1; }  // that an operation may use
  template <class T>
  T* as(TensorId t) const {
    return static_cast<T*>(at(t));
  }
};

// What a computation is for. recompute: a forward pass made again for the backward one.
enum class Phase : std::uint8_t { forward, backward, recompute, update };
inline constexpr std::size_t phase_count = 4;
std::string_view name(Phase);

struct Operation {
  enum class Kind : std::uint8_t { compute, exchange, wait } kind = Kind::compute;
  std::string name;
  std::vector<TensorId> reads, writes;
  double flops = 0;
  schedule::OperationShape shape = {};                        // of compute: what it costs
  std::function<void(const Memory&, const StepInputs&)> run;  // of compute
  Phase phase = Phase::forward;
  Exchange exchange;
  // An exchange with a ticket runs beside the operations after it, until the wait with the same ticket. 0: it is
  // finished before the next one begins.
  int ticket = 0;
  bool ahead = false;  // a wait that comes before its exchange: for the exchange that the previous run began
};

// An operation of this kind over a tensor's elements; fused_over: one that a compiler joins with its neighbours.
schedule::OperationShape shape_over(std::string_view kind, const Tensor&);
schedule::OperationShape fused_over(std::string_view kind, const Tensor&);
schedule::OperationShape shape_over(std::string_view kind, DType, std::size_t rows, std::size_t columns);

struct StepProgram {
  std::vector<Tensor> tensors;
  std::vector<Operation> operations;

  const Tensor& tensor(TensorId t) const { return tensors[static_cast<std::size_t>(t)]; }
  double bytes_touched(const Operation&) const;  // read and written here
  // The sum of count x element size over all transfers. Where a collective divides a buffer among the group, count is
  // that of one shard; for all_to_all_v, it is what each rank is expected to get.
  double bytes_exchanged(const Operation&) const;
};

}  // namespace trellis::train
