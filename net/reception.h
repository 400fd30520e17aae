// Takes connections at listening sockets, and greets their callers. Those that have proven nothing cost little: few are
// kept at a time, for a short time, and none waits for another.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "net/greeting.h"

namespace trellis::net {

// A connection whose caller has proven that it knows the secret.
struct ProvenCaller {
  Descriptor socket;
  Address from;
  GreetingListener greeting;
};

// Its functions are called by turn().
struct ReceptionOptions {
  const Greeting* greeting = nullptr;
  // The secret of what these terms ask for. Throws ProtocolError if that is not here.
  std::function<std::string(std::span<const std::byte> terms)> secret = {};
  std::function<void(ProvenCaller)> admit = {};
  std::function<void(const Address& from, const ProtocolError& why)> refused = [](auto&, auto&) {};
  // Called when the process may have no more descriptors (EMFILE). Returns true if it may have more now.
  std::function<bool()> raise_limit = [] { return false; };
  std::chrono::milliseconds patience{5'000};  // a caller that has not proven itself by then is refused
  // How many of `limit` descriptors may be held by callers whose hello was made with the secret, but who have not yet
  // proven that they know it: the hello may be a replay.
  std::size_t (*most_greeting)(std::size_t limit) = most_silent;
};

class Reception {
 public:
  explicit Reception(ReceptionOptions);
  void listen(Descriptor);  // at this socket too; from any thread
  void close();             // all sockets
  // To be called when descriptor() is readable, and at the time of next(). It does not wait.
  void turn();
  int descriptor() const { return poll_.number(); }
  Deadline next() const;

 private:
  using Id = std::uint64_t;
  struct Caller {
    Descriptor socket;
    Address from;
    GreetingListener greeting;
    Deadline until;
  };
  using Callers = std::map<Id, Caller>;  // the oldest first

  void watch(int number, Id, std::uint32_t events, bool known_already) const;
  void watch_listening(std::uint32_t events);
  void accept_some(int listening);
  void begin(Descriptor, const Address& from);
  Callers* callers_with(Id);
  void hear(Id);
  static bool read_some(Caller&);
  void answer(Caller&);
  void refuse(Callers&, Id, const ProtocolError&);
  bool push_out(Callers&);
  void expire();

  const ReceptionOptions rules_;
  Descriptor poll_;
  std::mutex mutex_;
  std::vector<Descriptor> listening_;  // guarded by the mutex
  Id next_id_;
  Callers silent_;                         // callers without a valid hello
  Callers greeting_;                       // callers that must still prove that their hello was no replay
  Deadline deaf_until_ = Deadline::min();  // out of descriptors: no connection is accepted before this time
};

}  // namespace trellis::net
