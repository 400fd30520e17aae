// Messages between devices of any processes: a channel goes one way, and its messages are done in order.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace trellis::device {

// A core by the address of its host, "10.0.0.1"; where its process listens elsewhere than usual, with the port of
// core 0: "10.0.0.1:47000".
struct PeerCore {
  std::string address;
  int core = 0;  // of the machine
};

class MessageHandle {
 public:
  virtual ~MessageHandle() = default;
  virtual bool done() = 0;                // throws system_error if it failed
  virtual std::size_t bytes() const = 0;  // bytes that were moved; known once it is done
};

// A message's memory must stay valid until the message is done or the channel is destroyed.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual bool connected() = 0;  // throws system_error if it never will be
  // Starts a send or a receive, whichever way the channel goes. `data` may be memory of the device or of the host. A
  // message may be shorter than the memory that receives it, but not longer. Throws system_error if the channel is not
  // connected, or if too many messages wait (no_buffer_space).
  virtual std::unique_ptr<MessageHandle> post(void* data, std::size_t bytes) = 0;
};

// Opens channels between a device's core and cores of any processes. Of several channels between the same two cores,
// the first connect() of one core is paired with the first accept() of the other, and so on. Neither function waits.
// Destroy the channels before the device. Throw system_error.
class ChannelFactory {
 public:
  virtual ~ChannelFactory() = default;
  virtual std::unique_ptr<Channel> connect(const PeerCore&) = 0;  // to a core that accepts
  virtual std::unique_ptr<Channel> accept(const PeerCore&) = 0;   // from a core that connects
};

}  // namespace trellis::device
