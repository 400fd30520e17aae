// Messages between NeuronCores, by the runtime itself.
#pragma once

#include <mutex>
#include <vector>

#include "device/channel.h"
#include "device/neuron/tensor_view.h"

namespace trellis::device {

// The channels of one core. The first one opens the core for messages.
class NeuronChannelFactory : public ChannelFactory {
 public:
  NeuronChannelFactory(std::shared_ptr<NeuronRuntime>, const TensorsByAddress&, int core);  // as the machine numbers it
  ~NeuronChannelFactory() override;
  NeuronChannelFactory(const NeuronChannelFactory&) = delete;
  NeuronChannelFactory& operator=(const NeuronChannelFactory&) = delete;
  std::unique_ptr<Channel> connect(const PeerCore& peer) override { return channel(true, peer); }
  std::unique_ptr<Channel> accept(const PeerCore& peer) override { return channel(false, peer); }

 private:
  class End;
  class Posted;
  std::unique_ptr<Channel> channel(bool sends, const PeerCore&);
  void keep(TensorView&&);  // of a message that may still be under way, though its MessageHandle is gone

  const std::shared_ptr<NeuronRuntime> runtime_;
  const TensorsByAddress& tensors_;
  const int core_;
  std::mutex mutex_;
  bool open_ = false;
  std::vector<TensorView> kept_;
};

}  // namespace trellis::device
