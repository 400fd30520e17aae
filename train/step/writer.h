// Writes the program of one rank: layers call it to add tensors and operations.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/step/program.h"

namespace trellis::train {

class Writer {
 public:
  Writer(const MeshShape& shape, const Place& place) : shape_(shape), place_(place) {}

  const MeshShape& shape() const { return shape_; }
  const Place& place() const { return place_; }

  TensorId tensor(std::string name, DType, std::size_t rows, std::size_t columns, Category = Category::activation);
  TensorId bounded(std::string name, DType, std::size_t most_rows, std::size_t columns);  // an activation
  const Tensor& tensor(TensorId t) const { return program_.tensor(t); }

  // Names of operations begin with the scopes that are open.
  class Scope {
   public:
    Scope(Writer& w, std::string_view word) : w_(w), before_(w.scope_.size()) {
      if (!w.scope_.empty()) w.scope_ += '.';
      w.scope_ += word;
    }
    ~Scope() { w_.scope_.resize(before_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Writer& w_;
    std::size_t before_;
  };
  const std::string& scope() const { return scope_; }
  Phase phase() const { return phase_; }

  // Sets the phase of operations, until it is destroyed.
  class For {
   public:
    For(Writer& w, Phase phase) : w_(w), before_(std::exchange(w.phase_, phase)) {}
    ~For() { w_.phase_ = before_; }
    For(const For&) = delete;
    For& operator=(const For&) = delete;

   private:
    Writer& w_;
    Phase before_;
  };

  using Run = std::function<void(const Memory&, const StepInputs&)>;
  // model_part: of a product, how much is the model's own work. Other ranks do the rest as well, or it is of padding.
  void compute(std::string_view name, std::vector<TensorId> reads, std::vector<TensorId> writes, double flops,
               schedule::OperationShape, Run, double model_part = 1);

  // Whole tensors over an axis. With one rank on the axis nothing is written, and `from` must be `to`.
  void all_reduce(std::string_view name, Axis, TensorId, kernels::Reduction = kernels::Reduction::sum);
  void reduce_scatter(std::string_view name, Axis, TensorId from, TensorId to);
  void all_gather(std::string_view name, Axis, TensorId from, TensorId to);
  void all_to_all(std::string_view name, Axis, TensorId from, TensorId to, std::size_t calls = 1);  // in equal parts
  void send(std::string_view name, Rank peer, TensorId, int label);
  void receive(std::string_view name, Rank peer, TensorId, int label);
  void exchange(std::string_view name, Exchange);

  // From here to the wait, the exchange runs beside other operations. Returns the ticket.
  int begin(std::string_view name, Exchange);
  void wait(int ticket);
  // For an exchange that goes on into the next step. wait_ahead() is written where the next step needs the result, and
  // so before begin_ahead(), which takes the same ticket.
  int ticket_ahead();
  void wait_ahead(std::string_view name, int ticket, Axis, std::vector<TensorId> results);
  void begin_ahead(std::string_view name, Exchange, int ticket);

  // Gradients of weights: written at once, or, while they are held back, when the pipeline has time for them.
  void weight_gradient(std::function<void(Writer&)> write);
  void hold_back() { held_ = true; }
  std::vector<std::function<void(Writer&)>> held();  // what was held back since; ends the holding back

  // True at the first call for a sum. For sums whose first term is written instead of added.
  bool first_term(TensorId sum) { return begun_sums_.insert(sum).second; }

  StepProgram finish() { return std::move(program_); }
  std::size_t operations() const { return program_.operations.size(); }
  double flops() const { return flops_; }              // of all operations so far
  double model_flops() const { return model_flops_; }  // the model's own, of products and attention in forward passes

 private:
  Operation made(std::string_view name, Operation::Kind) const;
  void add_exchange(Operation&, Exchange&&) const;

  MeshShape shape_;
  Place place_;
  StepProgram program_;
  double flops_ = 0, model_flops_ = 0;
  Phase phase_ = Phase::forward;
  std::string scope_;
  std::set<TensorId> begun_sums_;
  std::vector<std::size_t> begun_;  // the operations of tickets 1, 2, ...
  bool held_ = false;
  std::vector<std::function<void(Writer&)>> waiting_;
};

}  // namespace trellis::train
