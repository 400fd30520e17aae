#include "ccl/rendezvous/tcp/server.h"

#include <optional>

#include "ccl/print_to_stderr.h"
#include "ccl/rendezvous/tcp/loop.h"

namespace trellis::ccl {
namespace {

std::shared_ptr<StoreLoop> loop_of_one(StoreServerOptions serving) {
  const std::string secret = serving.secret;
  auto loop = std::make_shared<StoreLoop>(std::move(serving), std::nullopt);
  loop->stores().keep({}, secret);
  return loop;
}

constexpr int most_told = 16;

}  // namespace

std::function<void(const std::string&)> told_on_stderr() {
  return [told = 0](const std::string& why) mutable {
    if (++told > most_told) return;
    tell("trellis: the ranks' meeting place turned away {}{}\n", why,
         told == most_told ? "; of more it will be silent" : "");
  };
}

TcpStoreServer::Served::Served(std::shared_ptr<StoreLoop> l) : loop(std::move(l)), thread(serving_thread(loop)) {}

TcpStoreServer::Served::~Served() {
  loop->stop();
  thread.join();
}

TcpStoreServer::TcpStoreServer(StoreServerOptions serving) : served_(new Served(loop_of_one(std::move(serving)))) {}

int TcpStoreServer::port() const { return served_->loop->port(); }

std::int64_t TcpStoreServer::refused() const { return served_->loop->refused(); }

std::unique_ptr<TcpStoreServer> tcp_store_server(StoreServerOptions serving) {
  return std::make_unique<TcpStoreServer>(std::move(serving));
}

}  // namespace trellis::ccl
