// Messages of a core over TCP: it listens, pairs its endpoints with those of other cores, and each endpoint does its
// requests in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/channel.h"
#include "device/messages/connect_turns.h"
#include "device/messages/peer_connections.h"
#include "device/simulated_time.h"

namespace trellis::device {

inline constexpr int most_ends = 64, most_pending = 128;

// TRELLIS_NRT_SENDRECV_PORT: core n listens at this port plus n; on loopback alone, and on all addresses once a peer on
// another host was named. Such a peer must know the job's secret. Throws system_error.
int first_message_port();
inline constexpr const char* message_port_variable = "TRELLIS_NRT_SENDRECV_PORT";

// One message. Of the functions, a sender uses `read`, which copies from its memory, and a receiver `write`.
struct MessagePayload {
  std::size_t bytes = 0;
  std::function<void(std::byte* to)> read = {};
  std::function<void(const std::byte* from, std::size_t bytes)> write = {};
  RankClock sent = {};  // when it was sent and by which core; the receiver gets it with the message
};

class MessageRequest {
 public:
  explicit MessageRequest(MessagePayload p) : parcel(std::move(p)) {}
  bool done();  // throws the error with which it failed
  void finish(std::exception_ptr failed);
  MessagePayload parcel;  // its bytes and `sent` are the message's, once it is done

 private:
  std::mutex mutex_;
  bool done_ = false;
  std::exception_ptr failed_;
};

// One end of a channel. Its thread connects it to the other end, and then sends or receives messages.
class MessageEndpoint {
 public:
  // An endpoint with a turn calls the peer, and sends; one without a turn waits for the peer to call, and receives.
  MessageEndpoint(std::unique_ptr<ConnectTurn>, const net::Address&, int peer, int core,
                  std::chrono::milliseconds timeout);
  ~MessageEndpoint();

  int core() const { return core_; }
  bool sends() const { return turn_ != nullptr; }
  bool is_connected();  // throws if it never will be
  bool is_busy();
  std::shared_ptr<MessageRequest> add(MessagePayload);
  void stop();

 private:
  friend class TcpMessenger;
  void give(net::Descriptor);  // the connection: a sender's own call, or the call of a receiver's peer
  void work();
  void connect(const net::WaitLimit&);
  void move(MessageRequest&);

  const std::unique_ptr<ConnectTurn> turn_;
  const net::Address address_;  // where the peer listens
  const int peer_, core_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  net::Descriptor socket_;
  bool connected_ = false;
  std::atomic<bool> ending_ = false;
  std::exception_ptr broken_;
  std::deque<std::shared_ptr<MessageRequest>> waiting_;
  std::thread thread_;
};

class TcpMessenger {
 public:
  TcpMessenger(int core, std::chrono::milliseconds timeout);  // throws system_error: its port cannot be listened at
  ~TcpMessenger();                                            // stops all endpoints

  std::shared_ptr<MessageEndpoint> pair(bool sends, const PeerCore&);
  void drop(const std::shared_ptr<MessageEndpoint>&);  // it stops once its last user has gone
  std::string unfinished();                            // what is not connected or not done; empty: nothing

 private:
  struct Come {  // a peer's connection that no endpoint has taken yet
    net::Address from;
    int core = 0;
    net::Descriptor socket;
  };
  void arrived(ConnectionListener::Call);
  void match();
  void forget_gone();
  void listen_to_hosts();

  const int core_, first_port_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<MessageEndpoint>> ends_;
  std::vector<Come> come_;
  std::map<std::string, std::shared_ptr<ConnectTurns>> turns_;  // by the address of the peer
  bool to_hosts_ = false;                                       // a peer on another host was named
  std::unique_ptr<ConnectionListener> listener_;                // last: its thread uses all members above
};

}  // namespace trellis::device
