// Server of a TCP store: one process keeps the notes for the others, in a thread of its own.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "ccl/store.h"
#include "device/fork_mark.h"

namespace trellis::ccl {

class StoreLoop;

struct StoreServerOptions {
  std::string address = "";  // to listen at; "": all addresses of this machine
  int port = 0;              // 0: any free port
  std::string secret = "";   // clients must know it
  // Called by the serving thread for every rejected connection, with its origin and the reason. Must not throw.
  std::function<void(const std::string&)> on_refusal = {};
  std::chrono::milliseconds greeting{5'000};  // a connection that has not proven itself by then is closed
};

// An on_refusal that writes the first few refusals to standard error; the limit keeps a flood from filling a disk.
std::function<void(const std::string&)> told_on_stderr();

// Serves until it is destroyed; then every waiting client gets an error at once.
class TcpStoreServer {
 public:
  explicit TcpStoreServer(StoreServerOptions);  // throws system_error, for instance EADDRINUSE
  int port() const;
  std::int64_t refused() const;  // number of rejected connections

 private:
  struct Served {
    explicit Served(std::shared_ptr<StoreLoop>);
    ~Served();
    const std::shared_ptr<StoreLoop> loop;
    std::thread thread;
  };
  const device::MakersOwn<Served> served_;
};

std::unique_ptr<TcpStoreServer> tcp_store_server(StoreServerOptions);

// The client is tcp_store in ccl/store.h.

}  // namespace trellis::ccl
