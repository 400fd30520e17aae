#include "device/messages/tcp_messenger.h"

#include <algorithm>
#include <cstdlib>

#include "device/environment_variable.h"
#include "device/fork_mark.h"
#include "device/messages/failure.h"

namespace trellis::device {
namespace {

constexpr int usual_first_port = 46'920, last_port = 65'000;

struct Head {
  std::uint64_t bytes = 0;
  RankClock sent;
};

// The peer's address is a host, or HOST:PORT with the port of the peer's core 0.
net::Address listener_of(const PeerCore& peer, int usual_port) {
  std::pair place(peer.address, usual_port);
  if (peer.address.find(':') != std::string::npos) {
    const auto typed = net::host_and_port(peer.address);
    if (!typed)
      fail_with(std::errc::invalid_argument, "'{}': expected ADDRESS:PORT, as in 10.0.1.2:46820", peer.address);
    place = *typed;
  }
  const auto& [host, port] = place;
  if (peer.core < 0)
    fail_with(std::errc::invalid_argument, "core {} of the peer at {}: expected one from 0 on", peer.core,
              peer.address);
  if (peer.core > last_port - port)
    fail_with(std::errc::invalid_argument,
              "core {} of the peer at {}: it would listen at port {} + {}: expected at most {}", peer.core,
              peer.address, port, peer.core, last_port);
  return canonical(host, port + peer.core);
}

[[noreturn]] void throw_cannot_listen(const std::system_error& e, int first_port) {
  throw std::system_error(
      e.code(), fmt::format("{} (TRELLIS_NRT_SENDRECV_PORT={}: core n has the n-th port after it; name one from which "
                            "on ports are free)",
                            e.what(), first_port));
}

}  // namespace

int first_message_port() {
  const std::string value = value_of_variable(message_port_variable);
  if (value.empty()) return usual_first_port;
  const int port = std::atoi(value.c_str());
  if (port < 1024 || port > last_port)
    fail_with(std::errc::invalid_argument, "TRELLIS_NRT_SENDRECV_PORT={}: expected a port from 1024 to {}", value,
              last_port);
  return port;
}

bool MessageRequest::done() {
  const std::lock_guard lock(mutex_);
  if (failed_) std::rethrow_exception(failed_);
  return done_;
}

void MessageRequest::finish(std::exception_ptr failed) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(done_, true)) return;
  failed_ = std::move(failed);
}

MessageEndpoint::MessageEndpoint(std::unique_ptr<ConnectTurn> turn, const net::Address& address, int peer, int core,
                                 std::chrono::milliseconds timeout)
    : turn_(std::move(turn)), address_(address), peer_(peer), core_(core), timeout_(timeout), thread_([this] {
        work();
      }) {}

MessageEndpoint::~MessageEndpoint() {
  stop();
  thread_.join();
}

void MessageEndpoint::stop() {
  ending_ = true;
  if (turn_) turn_->wake();
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

bool MessageEndpoint::is_connected() {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  return connected_;
}

bool MessageEndpoint::is_busy() {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty();
}

std::shared_ptr<MessageRequest> MessageEndpoint::add(MessagePayload parcel) {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  if (!connected_) fail_with(std::errc::not_connected, "core {} of {} is not connected yet", peer_, address_.host());
  if (waiting_.size() >= most_pending)
    fail_with(std::errc::no_buffer_space, "{} messages are pending; that is the most", most_pending);
  waiting_.push_back(std::make_shared<MessageRequest>(std::move(parcel)));
  changed_.notify_all();
  return waiting_.back();
}

void MessageEndpoint::give(net::Descriptor s) {
  const std::lock_guard lock(mutex_);
  socket_ = std::move(s);
  connected_ = true;
  changed_.notify_all();
}

void MessageEndpoint::work() {
  std::exception_ptr why;
  try {
    const net::WaitLimit wait(net::Clock::now() + timeout_, [this] { return !ending_.load(); });
    if (turn_) connect(wait);
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, wait.until, [&] { return connected_ || ending_; }))
      fail_with(std::errc::timed_out, "core {} of {} has not connected", peer_, address_.host());
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
      if (ending_) fail_with(std::errc::operation_canceled, "it was closed");
      const auto request = waiting_.front();
      lock.unlock();
      move(*request);
      lock.lock();
      waiting_.pop_front();  // before finish(): who sees the request done may ask is_busy() at once
      request->finish(nullptr);
    }
  } catch (...) {
    why = std::current_exception();
  }
  if (turn_) turn_->end();
  const std::lock_guard lock(mutex_);
  broken_ = why;
  for (const auto& request : waiting_) request->finish(why);
  waiting_.clear();
}

void MessageEndpoint::connect(const net::WaitLimit& wait) {
  const bool has_come = turn_->wait(wait.until, ending_);
  if (ending_) fail_with(std::errc::operation_canceled, "it was closed");
  if (!has_come)
    fail_with(std::errc::timed_out, "an earlier connection to core {} of {} is not made", peer_, address_.host());
  give(call({.from = core_, .to = peer_, .first_port = first_message_port()}, address_, wait));
  turn_->end();
}

// A message is its size, when and where it was sent, and its bytes. One that is larger than the request is an error of
// the request.
void MessageEndpoint::move(MessageRequest& request) {
  const net::WaitLimit wait(net::Clock::now() + timeout_, [this] { return !ending_.load(); });
  MessagePayload& p = request.parcel;
  Head head{p.bytes, p.sent};
  if (sends()) {
    std::vector<std::byte> buffer(p.bytes);
    p.read(buffer.data());
    send_all(socket_, bytes_in(head), wait);
    send_all(socket_, buffer, wait);
    return;
  }
  receive_all(socket_, bytes_in(head), wait);
  if (head.bytes > p.bytes)
    fail_with(std::errc::message_size, "a message of {} bytes; {} were asked for", head.bytes, p.bytes);
  std::vector<std::byte> buffer(head.bytes);
  receive_all(socket_, buffer, wait);
  p.write(buffer.data(), head.bytes);
  p.bytes = head.bytes, p.sent = head.sent;
}

TcpMessenger::TcpMessenger(int core, std::chrono::milliseconds timeout)
    : core_(core), first_port_(first_message_port()), timeout_(timeout) {
  try {
    listener_ = std::make_unique<ConnectionListener>(
        canonical(loopback, first_port_ + core),
        ConnectionListener::ListenerOptions{.kind = ConnectionPurpose::messages,
                                            .to = core,
                                            .arrived = [this](auto c) { arrived(std::move(c)); },
                                            .meanwhile =
                                                [this] {
                                                  const std::lock_guard lock(mutex_);
                                                  forget_gone();
                                                }});
  } catch (const std::system_error& e) {
    throw_cannot_listen(e, first_port_);
  }
}

TcpMessenger::~TcpMessenger() {
  listener_.reset();
  for (const auto& end : ends_) end->stop();
}

void TcpMessenger::listen_to_hosts() {
  if (to_hosts_) return;
  try {
    for (auto& [interface, own] : net::own_addresses()) {
      if (own.family() != AF_INET) continue;
      own.set_port(first_port_ + core_);
      listener_->listen_at(own);
    }
    to_hosts_ = true;
  } catch (const std::system_error& e) {
    throw_cannot_listen(e, first_port_);
  }
}

// Stores a peer's connection until a receiving endpoint is made for it. Stores at most most_ends of them: the oldest is
// dropped.
void TcpMessenger::arrived(ConnectionListener::Call c) {
  const int port = c.hello.from < 0 ? -1 : c.hello.first_port + c.hello.from;
  if (port < 1024 || port > last_port) return;
  net::Address from = canonical(c.from);
  from.set_port(port);
  const std::lock_guard lock(mutex_);
  if (come_.size() >= most_ends) come_.erase(come_.begin());
  come_.push_back({from, c.hello.from, std::move(c.socket)});
  match();
}

void TcpMessenger::forget_gone() {
  std::erase_if(come_, [](const Come& one) { return net::has_gone(one.socket); });
}

void TcpMessenger::match() {
  forget_gone();
  for (auto at = come_.begin(); at != come_.end();) {
    const auto end = std::ranges::find_if(ends_, [&](const auto& one) {
      if (one->sends() || one->peer_ != at->core || one->address_ != at->from) return false;
      try {
        return !one->is_connected();
      } catch (const std::system_error&) {
        return false;
      }
    });
    if (end == ends_.end()) {
      ++at;
      continue;
    }
    (*end)->give(std::move(at->socket));
    at = come_.erase(at);
  }
}

std::shared_ptr<MessageEndpoint> TcpMessenger::pair(bool sends, const PeerCore& peer) {
  const net::Address at = listener_of(peer, first_port_);
  expect_secret_for(at, secret_of_job());
  const std::lock_guard lock(mutex_);
  if (!at.is_loopback()) listen_to_hosts();
  if (ends_.size() >= most_ends)
    fail_with(std::errc::no_buffer_space, "core {} has {} ends; that is the most", core_, most_ends);
  std::unique_ptr<ConnectTurn> turn;
  if (sends) {
    auto& turns = turns_[at.text()];
    if (!turns) turns = std::make_shared<ConnectTurns>();
    turn = std::make_unique<ConnectTurn>(turns);
  }
  const std::shared_ptr<MessageEndpoint> end(new MessageEndpoint(std::move(turn), at, peer.core, core_, timeout_),
                                             DeletedByMaker{});  // a forked process has no such thread
  ends_.push_back(end);
  if (!sends) match();
  return end;
}

void TcpMessenger::drop(const std::shared_ptr<MessageEndpoint>& end) {
  const std::lock_guard lock(mutex_);
  std::erase(ends_, end);
}

std::string TcpMessenger::unfinished() {
  std::string what;
  const std::lock_guard lock(mutex_);
  for (const auto& end : ends_) {
    try {
      if (!end->is_connected()) what = "a communicator is not connected yet";
    } catch (const std::system_error&) {  // broken: nothing is in flight any more
      continue;
    }
    if (end->is_busy()) what = "requests are in flight";
  }
  return what;
}

}  // namespace trellis::device
