// Client of a TCP store: finds the server at one of several addresses, authenticates, and sends requests.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "ccl/rendezvous/tcp/greeting.h"
#include "ccl/store.h"
#include "net/address.h"

namespace trellis::ccl {

struct StoreClientOptions {
  std::vector<net::Address> places;  // tried in turn, repeatedly, until one answers and knows the secret
  std::string secret;
  std::string name;              // of the store, for messages
  StoreName store = {};          // among the stores of its server
  bool strangers_end_it = true;  // fail at once at a server with another secret, or a relay to another port
  bool was_there = false;        // the store exists already: if it is not at its only address, it has ended
  // How long a set or an add, which have no deadline of their own, waits for the reply. 0: the time that the search
  // had, but at least 1 s and at most 30 s. After a call that was not answered in time, the next one opens a new
  // connection.
  std::chrono::milliseconds patience{0};
};

// Throws TimedOut, which reports the most telling of all attempts, or system_error (EACCES: another secret;
// ECONNREFUSED: the store was there and has gone). Calls of the store throw TimedOut when it does not answer, and
// system_error (ECONNREFUSED: nobody listens at its address any more).
std::shared_ptr<Store> find_tcp_store(StoreClientOptions, Deadline);

}  // namespace trellis::ccl
