#include "ccl/rendezvous/tcp_store_server.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <optional>

#include "ccl/quiet_thread.h"
#include "ccl/rendezvous/store_loop.h"

namespace trellis::ccl {
namespace {

std::thread serving_thread(std::shared_ptr<StoreLoop> loop, std::optional<std::chrono::milliseconds> linger) {
  return quiet_thread([loop = std::move(loop), linger] {
    try {
      loop->run(linger);
    } catch (const std::exception&) {  // no memory, no descriptors: the clients notice that it is gone
      loop->give_up();
    }
  });
}

int serve_alone(TcpStoreServing serving, std::optional<std::chrono::milliseconds> linger) {
  auto loop = std::make_shared<StoreLoop>(std::move(serving));
  const int port = loop->port();
  serving_thread(std::move(loop), linger).detach();
  return port;
}

constexpr int most_told = 16;

}  // namespace

std::function<void(const std::string&)> told_on_stderr() {
  return [told = 0](const std::string& why) mutable {
    if (++told > most_told) return;
    const std::string line = fmt::format("trellis: the ranks' meeting place turned away {}{}\n", why,
                                         told == most_told ? "; of more it will be silent" : "");
    std::fputs(line.c_str(), stderr);
  };
}

TcpStoreServer::TcpStoreServer(TcpStoreServing serving)
    : loop_(std::make_shared<StoreLoop>(std::move(serving))), thread_(serving_thread(loop_, std::nullopt)) {}

TcpStoreServer::~TcpStoreServer() {
  loop_->stop();
  thread_.join();
}

int TcpStoreServer::port() const { return loop_->port(); }

std::int64_t TcpStoreServer::refused() const { return loop_->refused(); }

std::unique_ptr<TcpStoreServer> tcp_store_server(TcpStoreServing serving) {
  return std::make_unique<TcpStoreServer>(std::move(serving));
}

int serve_for_the_process(TcpStoreServing serving) { return serve_alone(std::move(serving), std::nullopt); }

int serve_for_the_clients(TcpStoreServing serving, std::chrono::milliseconds linger) {
  return serve_alone(std::move(serving), linger);
}

}  // namespace trellis::ccl
