// A man in the middle of a connection, without its secret.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <functional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "net/socket.h"

namespace trellis::ccl {

// Accepts connections at a listening socket, and passes bytes on to a port of 127.0.0.1 and back; `edit` may change
// them.
class Relay {
 public:
  using Edit = std::function<void(bool from_client, std::span<std::byte>)>;

  Relay(net::Descriptor listener, std::function<int()> to, Edit edit = {})
      : listener_(std::move(listener)), to_(std::move(to)), edit_(std::move(edit)), thread_([this] { run(); }) {}
  ~Relay() {
    ended_ = true;
    thread_.join();
  }
  int port() const { return net::local_address(listener_).port(); }
  int calls() const { return calls_; }
  std::size_t carried() const { return carried_; }  // bytes

 private:
  void run() {
    std::vector<std::pair<net::Descriptor, net::Descriptor>> pairs;  // the client's, the server's
    while (!ended_) {
      std::vector<pollfd> polled = {{listener_.number(), POLLIN, 0}};
      for (const auto& [a, b] : pairs) {
        polled.push_back({a.number(), POLLIN, 0});
        polled.push_back({b.number(), POLLIN, 0});
      }
      poll(polled.data(), polled.size(), 5);
      for (std::size_t i = pairs.size(); i-- > 0;) {
        auto& [client, server] = pairs[i];
        if ((polled[1 + 2 * i].revents != 0 && !carry(client, server, true)) ||
            (polled[2 + 2 * i].revents != 0 && !carry(server, client, false)))
          pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (polled[0].revents == 0) continue;
      net::Descriptor client(accept(listener_.number(), nullptr, nullptr));
      ++calls_;
      net::Descriptor server = net::connect_before(net::addresses_of("127.0.0.1", to_()).front(),
                                                   net::Clock::now() + std::chrono::seconds(1));
      if (client && server) pairs.emplace_back(std::move(client), std::move(server));
    }
  }

  bool carry(const net::Descriptor& from, const net::Descriptor& to, bool from_client) {
    std::array<std::byte, 1 << 16> bytes;
    const ssize_t got = recv(from.number(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return got < 0 && errno == EAGAIN;
    const auto part = std::span(bytes).first(static_cast<std::size_t>(got));
    if (edit_) edit_(from_client, part);
    carried_ += part.size();
    try {
      return net::send_before(to, part, net::Clock::now() + std::chrono::seconds(5));
    } catch (const std::system_error&) {
      return false;
    }
  }

  net::Descriptor listener_;
  std::function<int()> to_;
  Edit edit_;
  std::atomic<bool> ended_ = false;
  std::atomic<int> calls_ = 0;
  std::atomic<std::size_t> carried_ = 0;
  std::thread thread_;
};

}  // namespace trellis::ccl
