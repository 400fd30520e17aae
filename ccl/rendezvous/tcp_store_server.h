// The one process that keeps the notes for the others, over TCP. It serves from a thread of its own.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "ccl/store.h"

namespace trellis::ccl {

class StoreLoop;

struct TcpStoreServing {
  std::string address = "";  // to listen at; "": every one of this machine
  int port = 0;              // 0: a free one
  std::string secret = "";   // clients must know it
  // Told of every connection that was turned away: from where, and why. Called by the serving thread; may not throw.
  std::function<void(const std::string&)> on_refusal = {};
  std::chrono::milliseconds greeting{5'000};  // a connection that has not proven itself by then is closed
};

// Writes them to standard error, the first few: a flood of them must not fill a disk.
std::function<void(const std::string&)> told_on_stderr();

// Serves until it is destroyed; then every client that waits has an error at once.
class TcpStoreServer {
 public:
  explicit TcpStoreServer(TcpStoreServing);  // throws system_error, EADDRINUSE among them
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;
  int port() const;
  std::int64_t refused() const;  // how many connections were turned away

 private:
  std::shared_ptr<StoreLoop> loop_;
  std::thread thread_;
};

std::unique_ptr<TcpStoreServer> tcp_store_server(TcpStoreServing);

// Serves from a thread that nobody joins: to the end of the process, or until nobody has been connected for `linger`
// since the last client left. Returns the port. Nobody owns such a server, as nobody owns an id made of 128 bytes.
int serve_for_the_process(TcpStoreServing);
int serve_for_the_clients(TcpStoreServing, std::chrono::milliseconds linger);

// The client's end: tcp_store in ccl/store.h.

}  // namespace trellis::ccl
