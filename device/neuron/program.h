// A NEFF that is loaded on a NeuronCore.
#pragma once

#include <atomic>

#include "device/neuron/tensors_by_address.h"
#include "device/program.h"

namespace trellis::device {

class NeuronProgram : public LoadedProgram {
 public:
  NeuronProgram(std::shared_ptr<NeuronRuntime>, const TensorsByAddress&, int core, std::span<const std::byte> neff);
  ~NeuronProgram() override;
  NeuronProgram(const NeuronProgram&) = delete;
  NeuronProgram& operator=(const NeuronProgram&) = delete;

  const std::string& name() const override { return name_; }
  const std::vector<ProgramOperand>& operands() const override { return operands_; }
  void run(const std::vector<Binding>&, Stream*) override;
  Time time() const override { return time_; }
  std::string profile() const override;

 private:
  class Sets;
  void execute(const std::vector<Binding>&);

  const std::shared_ptr<NeuronRuntime> runtime_;
  const TensorsByAddress& tensors_;
  const int core_;
  std::string name_;
  nrt::Model* model_ = nullptr;
  std::vector<ProgramOperand> operands_;
  std::atomic<Time> time_ = 0;
};

}  // namespace trellis::device
