// Runs a program on real memory: kernels on this rank, exchanges through communicators.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ccl/communicator.h"
#include "train/step/memory_plan.h"
#include "train/step/program.h"

namespace trellis::train {

// A communicator for each axis along which the program exchanges. Ranks of an axis stand in the order of its group.
using Communicators = std::map<Axis, std::shared_ptr<ccl::Communicator>>;

class Runner : public Memory {
 public:
  // The program must outlive the runner. Memory is all zeros at first. threads: of each operation.
  // Runners may share communicators, as long as one runs at a time and what it began is settled.
  Runner(const StepProgram&, Communicators, int threads = 1, ParameterStorage = ParameterStorage::here);
  ~Runner() override;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void* at(TensorId) const override;
  int threads() const override { return threads_; }
  const Communicators& communicators() const { return communicators_; }
  const MemoryPlan& memory() const { return plan_; }
  const StepProgram& program() const { return program_; }

  void run(const StepInputs&);
  // Waits for what a step has begun for the next one. Before it, parameters may still change.
  void settle();
  // Lets the tensor lie elsewhere, in another runner's memory.
  void borrow(TensorId t, void* at) { borrowed_[static_cast<std::size_t>(t)] = at; }
  // Runs the step and checks every result. Returns the first operation that wrote a NaN or an infinity; operation -1:
  // none. computed: this rank computed it; else an exchange brought it. Every rank must call it.
  struct Found {
    std::int64_t operation = -1;
    std::string name = {};
    bool computed = false;
  };
  Found first_not_finite(const StepInputs&);
  // When an operation began and ended on this thread. time_operations(to): later runs append theirs; null ends that.
  struct Timed {
    std::size_t operation = 0;
    std::chrono::steady_clock::time_point begin, end;
  };
  void time_operations(std::vector<Timed>* to) { timed_ = to; }
  double seconds_exchanging() const { return exchanging_; }  // in exchanges and in waits for them, since the beginning

 private:
  void one(const Operation&, const StepInputs&);
  void exchange(const Operation&);
  void exchange_uneven(const Operation&);
  void wait(const Operation&);
  bool finite(const Operation&) const;

  const StepProgram& program_;
  Communicators communicators_;
  std::map<Axis, std::unique_ptr<device::Stream>> streams_;  // of exchanges with tickets
  std::map<int, std::unique_ptr<device::Event>> begun_;      // by ticket: the end of its exchange
  MemoryPlan plan_;
  std::vector<void*> borrowed_;  // by tensor; null: it has its place here
  std::shared_ptr<device::Device> device_;
  std::byte* memory_ = nullptr;
  double exchanging_ = 0;
  std::vector<Timed>* timed_ = nullptr;
  int threads_;
};

}  // namespace trellis::train
