#include "ccl/rendezvous/store_loop.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace trellis::ccl {
namespace {

constexpr std::uint64_t listener_id = 0, stop_id = 1;
constexpr std::size_t most_unknown = 1024;
constexpr auto patience = std::chrono::seconds(30);       // with a known client in the middle of a frame
constexpr auto deaf_for = std::chrono::milliseconds(50);  // when descriptors have run out

std::system_error failure(const char* what) { return {errno, std::generic_category(), what}; }

}  // namespace

StoreLoop::StoreLoop(TcpStoreServing serving)
    : serving_(std::move(serving)),
      listener_(listen_at(serving_.address, serving_.port)),
      poll_(epoll_create1(EPOLL_CLOEXEC)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!poll_ || !stop_) throw failure("a store's server");
  port_ = local_endpoint(listener_).port();
  watch(listener_.number(), listener_id, EPOLLIN, false);
  watch(stop_.number(), stop_id, EPOLLIN, false);
}

void StoreLoop::stop() {
  stopping_.store(true);
  const std::uint64_t one = 1;
  if (write(stop_.number(), &one, sizeof one) < 0) return;  // full: it is awake already
}

void StoreLoop::give_up() {
  connections_.clear();
  listener_ = Descriptor();
}

void StoreLoop::run(std::optional<std::chrono::milliseconds> linger) {
  std::array<epoll_event, 64> events;
  while (!stopping_.load()) {
    const int count = epoll_wait(poll_.number(), events.data(), events.size(), milliseconds_to_sleep(linger));
    if (count < 0 && errno != EINTR) throw failure("a store's server");
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == listener_id)
        accept_all();
      else if (events[i].data.u64 != stop_id)
        handle(events[i].data.u64, events[i].events);
    }
    expire();
    if (linger && alone_since_ && Clock::now() >= *alone_since_ + *linger) return;
  }
}

int StoreLoop::milliseconds_to_sleep(std::optional<std::chrono::milliseconds> linger) const {
  Deadline first = Deadline::max();
  if (!deadlines_.empty()) first = deadlines_.begin()->first;
  if (linger && alone_since_) first = std::min(first, *alone_since_ + *linger);
  if (deaf_until_ > Deadline::min()) first = std::min(first, deaf_until_);
  return milliseconds_until(first);
}

void StoreLoop::watch(int number, Id id, std::uint32_t events, bool known_already) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(poll_.number(), known_already ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, number, &event) != 0)
    throw failure("watching a connection");
}

void StoreLoop::accept_all() {
  while (true) {
    Endpoint from;
    from.length = sizeof from.address;
    Descriptor socket(accept4(listener_.number(), reinterpret_cast<sockaddr*>(&from.address), &from.length,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return;
      if (make_room()) continue;
      deaf_until_ = Clock::now() + deaf_for;
      watch(listener_.number(), listener_id, 0, true);
      return;
    }
    if (unknown_.size() >= most_unknown) make_room();
    tune(socket);
    Nonce nonce;
    fill_random(nonce);
    const Id id = next_++;
    const int number = socket.number();
    Connection& c =
        connections_.emplace(id, Connection{std::move(socket), from.text(), {serving_.secret, nonce}}).first->second;
    watch(number, id, c.watched, false);
    unknown_.insert(id);
    set_deadline(id, c, Clock::now() + serving_.greeting);
  }
}

// Who floods the server with connections loses the oldest of those that have proven nothing.
bool StoreLoop::make_room() {
  if (unknown_.empty()) return false;
  refuse(*unknown_.begin(), "too many connections, and this one had proven nothing");
  return true;
}

void StoreLoop::handle(Id id, std::uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;  // ended by an earlier event of the same round
  Connection& c = found->second;
  try {
    if ((events & (EPOLLERR | EPOLLHUP)) != 0 || ((events & EPOLLRDHUP) != 0 && (events & EPOLLIN) == 0)) {
      if (!c.session.known()) throw Refused("it closed the connection before it had proven itself");
      end(id);
      return;
    }
    if ((events & EPOLLOUT) != 0) serve(id, c);
    if ((events & EPOLLIN) != 0) read_some(id, c);
  } catch (const Refused& reason) {
    refuse(id, reason.what());
  } catch (const std::system_error&) {  // it is gone
    end(id);
  }
}

void StoreLoop::read_some(Id id, Connection& c) {
  std::array<std::byte, 1 << 16> bytes;
  const ssize_t got = recv(c.socket.number(), bytes.data(), bytes.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) throw failure("receiving");
  if (got == 0) {
    if (!c.session.known()) throw Refused("it closed the connection before it had proven itself");
    if (c.session.in_the_middle()) throw Refused("it closed the connection in the middle of a message");
    end(id);
    return;
  }
  c.session.take({bytes.data(), static_cast<std::size_t>(got)});
  queue(c, c.session.answer());
  if (c.session.known() && unknown_.erase(id) != 0) {
    alone_since_.reset();
    set_deadline(id, c, Deadline::max());
  }
  serve(id, c);
}

// Answers what has come whole. One request at a time: the next one is looked at when the reply has left.
void StoreLoop::serve(Id id, Connection& c) {
  flush(c);
  while (c.output.empty() && c.awaited.empty()) {
    const std::optional<Request> request = c.session.request();
    if (!request) break;
    if (request->verb == Verb::get && notes_.find(request->key) == nullptr && request->wait.count() > 0) {
      c.awaited = request->key;
      waiting_[c.awaited].insert(id);
      set_deadline(id, c, Clock::now() + request->wait);
      break;
    }
    queue(c, frame_of(reply_to(*request)));
    flush(c);
    if (request->verb != Verb::get) wake_waiting(request->key);
  }
  settle(id, c);
}

Reply StoreLoop::reply_to(const Request& r) {
  const auto text = [](const std::exception& e) {
    const auto bytes = bytes_of(e.what());
    return Bytes(bytes.begin(), bytes.end());
  };
  try {
    if (r.verb == Verb::set) {
      notes_.set(r.key, r.value);
      return {};
    }
    if (r.verb == Verb::add) return {Outcome::done, counter_of(notes_.add(r.key, r.amount))};
    const Bytes* note = notes_.find(r.key);
    return note == nullptr ? Reply{Outcome::not_yet} : Reply{Outcome::done, *note};
  } catch (const std::invalid_argument& e) {
    return {Outcome::wrong, text(e)};
  } catch (const std::system_error& e) {
    return {Outcome::full, text(e)};
  }
}

void StoreLoop::wake_waiting(const std::string& key) {
  const Bytes* note = notes_.find(key);
  const auto found = waiting_.find(key);
  if (note == nullptr || found == waiting_.end()) return;
  const std::set<Id> ids = std::move(found->second);
  waiting_.erase(found);
  const Bytes frame = frame_of(Reply{Outcome::done, *note});
  for (Id id : ids) {
    Connection& c = connections_.at(id);
    c.awaited.clear();
    queue(c, frame);
    try {
      flush(c);
      settle(id, c);
    } catch (const std::system_error&) {
      end(id);
    }
  }
}

void StoreLoop::queue(Connection& c, const Bytes& bytes) {
  c.output.insert(c.output.end(), bytes.begin(), bytes.end());
}

void StoreLoop::flush(Connection& c) {
  while (c.sent < c.output.size()) {
    const ssize_t sent =
        send(c.socket.number(), c.output.data() + c.sent, c.output.size() - c.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) throw failure("sending");
    c.sent += static_cast<std::size_t>(sent);
  }
  Bytes().swap(c.output);
  c.sent = 0;
}

// What to watch for, and how long: after every change of what the connection is doing.
void StoreLoop::settle(Id id, Connection& c) {
  const bool reads = c.output.empty() && c.awaited.empty();
  const std::uint32_t events = EPOLLRDHUP | (reads ? EPOLLIN : 0U) | (c.output.empty() ? 0U : EPOLLOUT);
  if (events != c.watched) watch(c.socket.number(), id, c.watched = events, true);
  if (!c.session.known() || !c.awaited.empty()) return;
  set_deadline(id, c, !reads || c.session.in_the_middle() ? Clock::now() + patience : Deadline::max());
}

void StoreLoop::set_deadline(Id id, Connection& c, Deadline until) {
  if (c.until == until) return;
  deadlines_.erase({c.until, id});
  c.until = until;
  if (until != Deadline::max()) deadlines_.emplace(until, id);
}

void StoreLoop::expire() {
  const Deadline now = Clock::now();
  if (deaf_until_ > Deadline::min() && now >= deaf_until_) {
    deaf_until_ = Deadline::min();
    watch(listener_.number(), listener_id, EPOLLIN, true);
  }
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const Id id = deadlines_.begin()->second;
    Connection& c = connections_.at(id);
    if (c.awaited.empty()) {
      refuse(id, c.session.known() ? "it stopped in the middle of a message" : "it has not proven itself in time");
      continue;
    }
    const auto waits = waiting_.find(c.awaited);
    waits->second.erase(id);
    if (waits->second.empty()) waiting_.erase(waits);
    c.awaited.clear();
    queue(c, frame_of(Reply{Outcome::not_yet}));
    try {
      serve(id, c);
    } catch (const Refused& reason) {
      refuse(id, reason.what());
    } catch (const std::system_error&) {
      end(id);
    }
  }
}

void StoreLoop::end(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& c = found->second;
  deadlines_.erase({c.until, id});
  if (const auto waits = waiting_.find(c.awaited); waits != waiting_.end()) {
    waits->second.erase(id);
    if (waits->second.empty()) waiting_.erase(waits);
  }
  const bool was_known = unknown_.erase(id) == 0;
  connections_.erase(found);
  if (was_known && connections_.size() == unknown_.size()) alone_since_ = Clock::now();
}

void StoreLoop::refuse(Id id, const std::string& why) {
  const std::string text = fmt::format("{}: {}", connections_.at(id).from, why);
  refused_.fetch_add(1, std::memory_order_relaxed);
  if (serving_.on_refusal) serving_.on_refusal(text);
  end(id);  // last, so that who is hung up on finds it counted
}

}  // namespace trellis::ccl
