#include "device/neuron/channel.h"

#include <optional>

#include "text/refuse.h"

namespace trellis::device {

class NeuronChannelFactory::Posted : public MessageHandle {
 public:
  Posted(NeuronChannelFactory& of, TensorView view, nrt::SendRecvRequest* request, bool sends)
      : of_(of), view_(std::move(view)), request_(request), sends_(sends) {}
  ~Posted() override {
    try {
      if (view_) of_.keep(std::move(*view_));
    } catch (...) {  // out of memory: the view ends here, though the runtime may still use it
    }
  }
  Posted(const Posted&) = delete;
  Posted& operator=(const Posted&) = delete;

  bool done() override {
    if (!view_) return true;
    const NeuronRuntime& r = *of_.runtime_;
    bool ended = false;
    try {
      r.call(r.library().nrt_async_sendrecv_test_request, "nrt_async_sendrecv_test_request", request_, &ended, &bytes_);
    } catch (...) {
      view_.reset();  // the request is gone
      throw;
    }
    if (!ended) return false;
    view_.reset();
    if (!sends_) r.call(r.library().nrt_async_sendrecv_flush, "nrt_async_sendrecv_flush", of_.core_);
    return true;
  }
  std::size_t bytes() const override { return bytes_; }

 private:
  NeuronChannelFactory& of_;
  std::optional<TensorView> view_;  // none: it is done
  nrt::SendRecvRequest* const request_;
  const bool sends_;
  std::size_t bytes_ = 0;
};

// One end of a channel; the runtime closes it with its core.
class NeuronChannelFactory::End : public Channel {
 public:
  End(NeuronChannelFactory& of, nrt::SendRecvComm* comm, bool sends) : of_(of), comm_(comm), sends_(sends) {}
  bool connected() override {
    const NeuronRuntime& r = *of_.runtime_;
    bool done = false;
    r.call(r.library().nrt_async_sendrecv_test_comm, "nrt_async_sendrecv_test_comm", comm_, &done);
    return done;
  }
  std::unique_ptr<MessageHandle> post(void* data, std::size_t bytes) override {
    const NeuronRuntime& r = *of_.runtime_;
    const nrt::NrtLibrary& l = r.library();
    TensorView view(r, of_.tensors_, data, bytes, "message");
    nrt::SendRecvRequest* request = nullptr;
    r.call(sends_ ? l.nrt_async_sendrecv_send_tensor : l.nrt_async_sendrecv_recv_tensor,
           sends_ ? "nrt_async_sendrecv_send_tensor" : "nrt_async_sendrecv_recv_tensor", view.tensor(), std::size_t{0},
           bytes, comm_, &request);
    return std::make_unique<Posted>(of_, std::move(view), request, sends_);
  }

 private:
  NeuronChannelFactory& of_;
  nrt::SendRecvComm* const comm_;
  const bool sends_;
};

NeuronChannelFactory::NeuronChannelFactory(std::shared_ptr<NeuronRuntime> runtime, const TensorsByAddress& tensors,
                                           int core)
    : runtime_(std::move(runtime)), tensors_(tensors), core_(core) {}

NeuronChannelFactory::~NeuronChannelFactory() {
  if (open_) runtime_->library().nrt_async_sendrecv_close(core_);
}

std::unique_ptr<Channel> NeuronChannelFactory::channel(bool sends, const PeerCore& peer) {
  const NeuronRuntime& r = *runtime_;
  const nrt::NrtLibrary& l = r.library();
  if (peer.address.find(':') != std::string::npos)
    text::refuse("'{}': expected an address without a port: the runtime has ports of its own", peer.address);
  {
    const std::lock_guard lock(mutex_);
    if (!open_) r.call(l.nrt_async_sendrecv_init, "nrt_async_sendrecv_init", core_);
    open_ = true;
  }
  nrt::SendRecvComm* comm = nullptr;
  r.call(sends ? l.nrt_async_sendrecv_connect : l.nrt_async_sendrecv_accept,
         sends ? "nrt_async_sendrecv_connect" : "nrt_async_sendrecv_accept", peer.address.c_str(), peer.core, core_,
         &comm);
  return std::make_unique<End>(*this, comm, sends);
}

void NeuronChannelFactory::keep(TensorView&& view) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(view));
}

}  // namespace trellis::device
