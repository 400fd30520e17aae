#include "device/messages/peer_connections.h"

#include <netinet/in.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "device/environment_variable.h"
#include "device/messages/failure.h"

namespace trellis::device {
namespace {

using namespace std::chrono_literals;

constexpr auto turn_time = 50ms;
constexpr int most_tries = 10;  // of a greeting
constexpr auto between_tries = 100ms, between_connections = 10ms;

net::Descriptor connection_to(const net::Address& listener, const net::WaitLimit& wait) {
  for (;;) {
    net::Descriptor socket = net::connect_before(listener, wait);
    if (socket) return socket;
    if (net::Clock::now() >= wait.until)
      fail_with(std::errc::timed_out, "nobody listens at {}: {}", listener.text(), std::strerror(errno));
    wait.expect_to_go_on();
    std::this_thread::sleep_for(between_connections);
  }
}

void greet(const net::Descriptor& socket, const ConnectionHello& hello, const net::Address& listener,
           const net::WaitLimit& wait) {
  net::GreetingCaller calling(call_greeting, secret_of_job(), hello.terms());
  const auto refused = [&] {
    fail_with(std::errc::permission_denied,
              "what listens at {} ended the greeting: it is another program's, or a job's with another TRELLIS_SECRET",
              listener.text());
  };
  try {
    if (!net::greet(socket, calling, wait)) fail_with(std::errc::timed_out, "nothing comes from a peer");
    std::byte is_taken{};
    receive_all(socket, bytes_in(is_taken), wait);
  } catch (const net::ProtocolError&) {
    refused();
  } catch (const std::system_error& e) {
    if (e.code() != std::errc::connection_reset && e.code() != std::errc::broken_pipe) throw;
    refused();
  }
}

}  // namespace

std::string secret_of_job() { return value_of_variable("TRELLIS_SECRET"); }

void expect_secret_for(const net::Address& host, std::string_view secret) {
  if (secret.empty() && !host.is_loopback())
    fail_with(std::errc::permission_denied,
              "{} is another host, and without a secret its processes cannot prove that they are of this job: set "
              "TRELLIS_SECRET, the same for all",
              host.host());
}

net::Address canonical(const std::string& host, int port) try {
  return canonical(net::addresses_of(host, port, AF_INET).front());
} catch (const std::system_error& e) {
  throw std::system_error(std::make_error_code(std::errc::invalid_argument), e.what());
}

// An address is this machine's if a socket can be bound to it.
net::Address canonical(const net::Address& address) {
  net::Address any_port = address;
  any_port.set_port(0);
  if (!net::bound_to(any_port, SOCK_DGRAM)) return address;
  return net::addresses_of(loopback, address.port(), AF_INET).front();
}

net::Bytes ConnectionHello::terms() const {
  net::Bytes terms;
  net::put(terms, static_cast<std::uint32_t>(kind));
  for (const std::int32_t number : {from, to, first_port}) net::put(terms, number);
  return terms;
}

ConnectionHello ConnectionHello::in(std::span<const std::byte> terms) {
  net::WireReader reader(terms);
  ConnectionHello hello{.kind = static_cast<ConnectionPurpose>(reader.number<std::uint32_t>("kind"))};
  for (std::int32_t* const number : {&hello.from, &hello.to, &hello.first_port})
    *number = reader.number<std::int32_t>("numbers");
  return hello;
}

net::Descriptor call(const ConnectionHello& hello, const net::Address& listener, const net::WaitLimit& wait) {
  for (int tries = 1;; ++tries) {
    net::Descriptor socket = connection_to(listener, wait);
    try {
      greet(socket, hello, listener, wait);
      return socket;
    } catch (const std::system_error& e) {
      if (e.code() != std::errc::permission_denied || tries == most_tries) throw;
    }
    std::this_thread::sleep_for(between_tries);
  }
}

void send_all(const net::Descriptor& to, std::span<const std::byte> bytes, const net::WaitLimit& wait) {
  if (!net::send_before(to, bytes, wait)) fail_with(std::errc::timed_out, "a peer takes nothing");
}

void receive_all(const net::Descriptor& from, std::span<std::byte> bytes, const net::WaitLimit& wait) {
  if (!net::receive_before(from, bytes, wait)) fail_with(std::errc::timed_out, "nothing comes from a peer");
}

ConnectionListener::ConnectionListener(const net::Address& at, ListenerOptions answering)
    : answering_(std::move(answering)),
      reception_({.greeting = &call_greeting,
                  .secret =
                      [this](auto terms) {
                        const ConnectionHello hello = ConnectionHello::in(terms);
                        if (hello.kind != answering_.kind || hello.to != answering_.to)
                          throw net::ProtocolError("a caller of another core or meeting", net::Verdict::elsewhere);
                        return secret_;
                      },
                  .admit =
                      [this](net::ProvenCaller caller) {
                        const std::byte is_taken{};  // one byte fits into its buffer, unless the connection has ended
                        if (send(caller.socket.number(), &is_taken, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) return;
                        answering_.arrived(
                            {ConnectionHello::in(caller.greeting.terms()), caller.from, std::move(caller.socket)});
                      }}) {
  listen_at(at);
  thread_ = std::thread([this] { work(); });
}

ConnectionListener::~ConnectionListener() {
  ending_ = true;
  thread_.join();
}

void ConnectionListener::work() {
  while (!ending_) {
    try {
      const net::Deadline turn = net::Clock::now() + turn_time;
      net::ready_before(reception_.descriptor(), POLLIN, std::min(turn, reception_.next()));
      reception_.turn();
      answering_.meanwhile();
    } catch (const std::exception&) {  // no memory or no descriptors at the moment
      std::this_thread::sleep_for(turn_time);
    }
  }
}

}  // namespace trellis::device
