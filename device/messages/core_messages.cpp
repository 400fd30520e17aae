#include "device/messages/core_messages.h"

#include <algorithm>
#include <cstdlib>

#include "device/environment.h"
#include "device/messages/failure.h"

namespace trellis::device {
namespace {

constexpr int usual_first_port = 46'920, last_port = 65'000;

struct Head {
  std::uint64_t bytes = 0;
  RankClock sent;
};

Address listener_of(const PeerCore& peer, int usual) {
  const bool has_port = peer.address.find(':') != std::string::npos;
  Address at = has_port ? address_of(peer.address) : Address{peer.address, static_cast<std::uint16_t>(usual)};
  if (peer.core < 0 || peer.core > last_port - at.port)
    fail_with(std::errc::invalid_argument, "core {} of the peer at {}: expected one from 0 on", peer.core,
              peer.address);
  at.port = static_cast<std::uint16_t>(at.port + peer.core);
  at.host = canonical(at.host);
  return at;
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

MessageEnd::MessageEnd(bool sends, Address address, int peer, int core, std::chrono::milliseconds timeout)
    : sends_(sends), address_(std::move(address)), peer_(peer), core_(core), timeout_(timeout), thread_([this] {
        work();
      }) {}

MessageEnd::~MessageEnd() {
  stop();
  thread_.join();
}

void MessageEnd::stop() {
  ending_ = true;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

bool MessageEnd::is_connected() {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  return connected_;
}

bool MessageEnd::is_busy() {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty();
}

std::shared_ptr<MessageRequest> MessageEnd::add(Parcel parcel) {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  if (!connected_) fail_with(std::errc::not_connected, "core {} of {} is not connected yet", peer_, address_.host);
  if (waiting_.size() >= most_pending)
    fail_with(std::errc::no_buffer_space, "{} messages are pending; that is the most", most_pending);
  waiting_.push_back(std::make_shared<MessageRequest>(std::move(parcel)));
  changed_.notify_all();
  return waiting_.back();
}

void MessageEnd::give(Socket s) {
  const std::lock_guard lock(mutex_);
  socket_ = std::move(s);
  connected_ = true;
  changed_.notify_all();
}

void MessageEnd::work() {
  const auto go_on = [this] { return !ending_.load(); };
  std::exception_ptr why;
  try {
    const Deadline deadline = std::chrono::steady_clock::now() + timeout_;
    if (sends_) give(call({.from = core_, .to = peer_, .first_port = first_message_port()}, address_, deadline, go_on));
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, deadline, [&] { return connected_ || ending_; }))
      fail_with(std::errc::timed_out, "core {} of {} has not connected", peer_, address_.host);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
      if (ending_) fail_with(std::errc::operation_canceled, "it was closed");
      const auto request = waiting_.front();
      lock.unlock();
      move(*request);
      lock.lock();
      waiting_.pop_front();  // first: who sees that it is done may ask whether anything is left
      request->finish(nullptr);
    }
  } catch (...) {
    why = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  broken_ = why;
  for (const auto& request : waiting_) request->finish(why);
  waiting_.clear();
}

// A message is its size, when and where it was sent, and its bytes. One that is larger than the request is an error of
// the request.
void MessageEnd::move(MessageRequest& request) {
  const auto go_on = [this] { return !ending_.load(); };
  const Deadline deadline = std::chrono::steady_clock::now() + timeout_;
  Parcel& p = request.parcel;
  Head head{p.bytes, p.sent};
  if (sends_) {
    std::vector<std::byte> buffer(p.bytes);
    p.read(buffer.data());
    socket_.send(bytes_of(head), deadline, go_on);
    socket_.send(buffer, deadline, go_on);
    return;
  }
  socket_.receive(std::as_writable_bytes(std::span(&head, 1)), deadline, go_on);
  if (head.bytes > p.bytes)
    fail_with(std::errc::message_size, "a message of {} bytes; {} were asked for", head.bytes, p.bytes);
  std::vector<std::byte> buffer(head.bytes);
  socket_.receive(buffer, deadline, go_on);
  p.write(buffer.data(), head.bytes);
  p.bytes = head.bytes, p.sent = head.sent;
}

CoreMessages::CoreMessages(int core, std::chrono::milliseconds timeout)
    : core_(core), first_port_(first_message_port()), timeout_(timeout) {
  try {
    listener_ =
        std::make_unique<CallListener>(Address{loopback, static_cast<std::uint16_t>(first_port_ + core)},
                                       CallListener::Answering{.kind = CallKind::messages,
                                                               .to = core,
                                                               .arrived = [this](auto c) { arrived(std::move(c)); },
                                                               .meanwhile = [this] { forget_gone(); }});
  } catch (const std::system_error& e) {
    throw_cannot_listen(e, first_port_);
  }
}

CoreMessages::~CoreMessages() {
  listener_.reset();
  for (const auto& end : ends_) end->stop();
}

void CoreMessages::listen_to_hosts() {
  if (to_hosts_) return;
  try {
    for (const std::string& own : own_addresses())
      listener_->listen_at({own, static_cast<std::uint16_t>(first_port_ + core_)});
    to_hosts_ = true;
  } catch (const std::system_error& e) {
    throw_cannot_listen(e, first_port_);
  }
}

// Keeps the calls of peers that nobody has accepted yet: at most as many as there can be ends; the oldest goes.
void CoreMessages::arrived(CallListener::Call c) {
  const int port = c.hello.from < 0 ? -1 : c.hello.first_port + c.hello.from;
  if (port < 1024 || port > last_port) return;
  Address from{canonical(c.from), static_cast<std::uint16_t>(port)};
  const std::lock_guard lock(mutex_);
  if (come_.size() >= most_ends) come_.erase(come_.begin());
  come_.push_back({std::move(from), c.hello.from, std::move(c.socket)});
  match();
}

void CoreMessages::forget_gone() {
  const std::lock_guard lock(mutex_);
  std::erase_if(come_, [](const Come& one) { return one.socket.has_gone(); });
}

void CoreMessages::match() {
  for (auto at = come_.begin(); at != come_.end();) {
    const auto end = std::ranges::find_if(ends_, [&](const auto& one) {
      if (one->sends() || one->peer_ != at->core || one->address_.host != at->from.host ||
          one->address_.port != at->from.port)
        return false;
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

std::shared_ptr<MessageEnd> CoreMessages::pair(bool sends, const PeerCore& peer) {
  const Address at = listener_of(peer, first_port_);
  expect_secret_for(at.host, secret_of_job());
  const std::lock_guard lock(mutex_);
  if (at.host != loopback) listen_to_hosts();
  if (ends_.size() >= most_ends)
    fail_with(std::errc::no_buffer_space, "core {} has {} ends; that is the most", core_, most_ends);
  auto end = std::make_shared<MessageEnd>(sends, at, peer.core, core_, timeout_);
  ends_.push_back(end);
  if (!sends) match();
  return end;
}

void CoreMessages::drop(const std::shared_ptr<MessageEnd>& end) {
  const std::lock_guard lock(mutex_);
  std::erase(ends_, end);
}

std::string CoreMessages::unfinished() {
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
