// The client's end of a TCP store: finds the server among several places, proves itself, asks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ccl/rendezvous/socket.h"
#include "ccl/store.h"

namespace trellis::ccl {

struct StoreSearch {
  std::vector<Endpoint> places;  // tried in turn, again and again, until one answers and knows the secret
  std::string secret;
  std::string name;              // of the store, for messages
  bool strangers_end_it = true;  // another program or another secret at a place is an error at once
};

// Throws TimedOut, with what was found at the last place, or system_error (EACCES: another secret; EPROTO: no store).
std::shared_ptr<Store> find_tcp_store(StoreSearch, Deadline);

}  // namespace trellis::ccl
