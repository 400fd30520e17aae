// Client of a TCP store: finds the server among several places, authenticates, and sends requests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ccl/rendezvous/tcp/greeting.h"
#include "ccl/rendezvous/tcp/socket.h"
#include "ccl/store.h"

namespace trellis::ccl {

struct StoreSearch {
  std::vector<Endpoint> places;  // tried in turn, repeatedly, until one answers and knows the secret
  std::string secret;
  std::string name;              // of the store, for messages
  StoreName store = {};          // among the stores of its server
  bool strangers_end_it = true;  // a server with another secret at a place is an error at once
  bool was_there = false;        // it ran before the search: if it is not at its only place, it will not come
};

// Throws TimedOut with what was found at the last place, or system_error (EACCES: another secret; ECONNREFUSED: the
// store was there and has gone).
std::shared_ptr<Store> find_tcp_store(StoreSearch, Deadline);

}  // namespace trellis::ccl
