// What a TCP store's serving thread runs: one loop over all connections. Everything but stop() belongs to that thread.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "ccl/rendezvous/socket.h"
#include "ccl/rendezvous/tcp_message.h"
#include "ccl/rendezvous/tcp_store_server.h"

namespace trellis::ccl {

class StoreLoop {
 public:
  explicit StoreLoop(TcpStoreServing);

  void run(std::optional<std::chrono::milliseconds> linger);  // nullopt: until stop()
  void stop();                                                // from any thread
  void give_up();                                             // closes everything
  int port() const { return port_; }
  std::int64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  using Id = std::uint64_t;
  struct Connection {
    Descriptor socket;
    std::string from;
    Session session;
    Bytes output = {};
    std::size_t sent = 0;
    std::uint32_t watched = EPOLLIN | EPOLLRDHUP;
    std::string awaited = {};          // the key that its get waits for; empty: none
    Deadline until = Deadline::max();  // of the greeting, of a frame, of a get, of a reply that it must take
  };

  void watch(int number, Id id, std::uint32_t events, bool known_already);
  void accept_all();
  bool make_room();
  void handle(Id id, std::uint32_t events);
  void read_some(Id id, Connection&);
  void serve(Id id, Connection&);
  Reply reply_to(const Request&);
  void wake_waiting(const std::string& key);
  void queue(Connection&, const Bytes&);
  void flush(Connection&);
  void settle(Id id, Connection&);
  void set_deadline(Id id, Connection&, Deadline);
  void expire();
  void end(Id id);
  void refuse(Id id, const std::string& why);
  int milliseconds_to_sleep(std::optional<std::chrono::milliseconds> linger) const;

  TcpStoreServing serving_;
  Descriptor listener_, poll_, stop_;
  int port_ = 0;
  std::atomic<std::int64_t> refused_ = 0;
  std::atomic<bool> stopping_ = false;

  Notes notes_;
  Id next_ = 16;  // below: what is no connection
  std::map<Id, Connection> connections_;
  std::set<Id> unknown_;  // connections that have not proven themselves, the oldest first
  std::set<std::pair<Deadline, Id>> deadlines_;
  std::unordered_map<std::string, std::set<Id>> waiting_;
  std::optional<Deadline> alone_since_;    // the last client has left
  Deadline deaf_until_ = Deadline::min();  // out of descriptors: no connection is accepted before
};

}  // namespace trellis::ccl
