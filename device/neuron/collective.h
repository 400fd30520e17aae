// Collectives that the Neuron runtime does by itself, driven from the host.
#pragma once

#include <mutex>

#include "device/native_collective.h"
#include "device/neuron/tensors_by_address.h"

namespace trellis::device {

// The collectives of one core.
class NeuronCollectives : public NativeCollectives {
 public:
  NeuronCollectives(std::shared_ptr<NeuronRuntime> runtime, const TensorsByAddress& tensors, int core)
      : runtime_(std::move(runtime)), tensors_(tensors), core_(core) {}
  NativeWorld join(const NativeWorld& proposed) override;
  std::string refuses(const NativeCollective&) const override;
  std::unique_ptr<NativeCollectiveRun> start(const NativeCollective&, NativeTurn) override;
  NativeTurn take_turn() override { return runtime_->take_native_turn(core_); }

 private:
  const std::shared_ptr<NeuronRuntime> runtime_;
  const TensorsByAddress& tensors_;
  const int core_;
  mutable std::mutex mutex_;
  NativeWorld world_;
  std::string no_world_;  // why it has none
};

}  // namespace trellis::device
