// Event loop of a TCP store's serving thread, over all connections to the stores that it keeps: those of clients that
// have proven that they know the secret. Members belong to that thread unless stated otherwise.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ccl/rendezvous/tcp/served_stores.h"
#include "ccl/rendezvous/tcp/server.h"
#include "ccl/rendezvous/tcp/store_server_codec.h"
#include "net/reception.h"

namespace trellis::ccl {

class StoreLoop {
 public:
  // If `linger` is given, nobody owns the loop, and it ends with the last of its stores.
  StoreLoop(StoreServerOptions, std::optional<std::chrono::milliseconds> linger);

  void run();
  void give_up();  // closes everything
  // From any thread:
  void stop();
  void tell(const StoreName&, std::string_view key);  // wakes gets of a note that was changed from outside the loop
  ServedStores& stores() { return stores_; }
  int port() const { return port_; }
  std::int64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  using Id = std::uint64_t;
  struct Connection {
    net::Descriptor socket;
    net::Address from;
    StoreServerCodec session;
    ServedStores::Use store;
    Bytes output = {};
    std::size_t sent = 0;
    std::uint32_t watched = EPOLLIN | EPOLLRDHUP;
    std::string awaited = {};          // the key that its get waits for; empty: none
    Deadline until = Deadline::max();  // of the frame, the get or the reply in progress
  };
  struct Change {
    StoreName store;
    std::string key;
  };

  void wake() const;
  void hear_changes();
  void watch(int number, Id id, std::uint32_t events, bool known_already);
  std::string secret_of(std::span<const std::byte> terms);
  bool raise_limit();
  void admit(net::ProvenCaller);
  template <class Work>
  void ending_on_failure(Id id, Work work);
  void handle(Id id, std::uint32_t events);
  void read_some(Id id, Connection&);
  void serve(Id id, Connection&);
  Reply reply_to(ServedStore&, const StoreRequest&);
  void wake_waiting(ServedStore&, const std::string& key);
  void wait_no_more(Id id, Connection&);
  void queue(Connection&, const Bytes&);
  void flush(Connection&);
  void settle(Id id, Connection&);
  void set_deadline(Id id, Connection&, Deadline);
  void expire();
  void end(Id id);
  void refuse(Id id, const net::ProtocolError& why);
  void tell_of_refusal(const net::Address& from, const net::ProtocolError& why);
  int milliseconds_to_sleep() const;

  StoreServerOptions serving_;
  net::Reception reception_;
  net::Descriptor poll_, woken_;
  int port_ = 0;
  std::atomic<std::int64_t> refused_ = 0;
  std::atomic<bool> stopping_ = false;
  ServedStores stores_;
  std::mutex mutex_;
  std::vector<Change> changes_;  // guarded by the mutex above

  Id next_ = 16;  // smaller numbers are not connections
  std::map<Id, Connection> connections_;
  std::set<std::pair<Deadline, Id>> deadlines_;
  bool told_of_limit_ = false;
};

// Starts the thread. When the loop fails, everything is closed, and clients get an error.
std::thread serving_thread(std::shared_ptr<StoreLoop>);

}  // namespace trellis::ccl
