#include "net/reception.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace trellis::net {
namespace {

constexpr int most_accepted = 16;                               // accepted in a row, before earlier ones are read
constexpr auto deaf_for = std::chrono::milliseconds(50);        // pause in accepting when no descriptor is free
constexpr std::uint64_t first_caller = std::uint64_t{1} << 32;  // smaller ids are those of listening sockets

const char* const left_early = "it closed the connection before it had proven itself";

std::system_error failure(const char* what) { return {errno, std::generic_category(), what}; }

}  // namespace

Reception::Reception(ReceptionOptions rules)
    : rules_(std::move(rules)), poll_(epoll_create1(EPOLL_CLOEXEC)), next_id_(first_caller) {
  if (!poll_) throw failure("a listener");
}

void Reception::listen(Descriptor socket) {
  const std::lock_guard lock(mutex_);
  watch(socket.number(), static_cast<Id>(socket.number()), EPOLLIN, false);
  listening_.push_back(std::move(socket));
}

void Reception::close() {
  const std::lock_guard lock(mutex_);
  listening_.clear();
  silent_.clear();
  greeting_.clear();
}

void Reception::watch(int number, Id id, std::uint32_t events, bool known_already) const {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(poll_.number(), known_already ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, number, &event) != 0)
    throw failure("watching a connection");
}

void Reception::watch_listening(std::uint32_t events) {
  const std::lock_guard lock(mutex_);
  for (const Descriptor& one : listening_) watch(one.number(), static_cast<Id>(one.number()), events, true);
}

Deadline Reception::next() const {
  Deadline first = deaf_until_ > Deadline::min() ? deaf_until_ : Deadline::max();
  for (const Callers* all : {&silent_, &greeting_})
    if (!all->empty()) first = std::min(first, all->begin()->second.until);  // all are given the same time
  return first;
}

void Reception::turn() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(poll_.number(), events.data(), events.size(), 0);
  if (count < 0 && errno != EINTR) throw failure("a listener");
  const auto ready = std::span(events).first(static_cast<std::size_t>(std::max(count, 0)));
  for (const epoll_event& e : ready)
    if (e.data.u64 >= first_caller) hear(e.data.u64);
  for (const epoll_event& e : ready)
    if (e.data.u64 < first_caller) accept_some(static_cast<int>(e.data.u64));
  expire();
}

void Reception::accept_some(int listening) {
  for (int times = 0; times < most_accepted; ++times) {
    Address from;
    from.length = sizeof from.storage;
    Descriptor socket(accept4(listening, from.raw(), &from.length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      begin(std::move(socket), from);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      const bool own_limit = errno == EMFILE;
      if (push_out(silent_) || (own_limit && rules_.raise_limit())) continue;
      deaf_until_ = Clock::now() + deaf_for;
      return watch_listening(0);
    }  // any other error concerns a connection that has ended
  }
}

// Reads at once: the hello has probably arrived, and a connection with a hello is not closed in favour of others.
void Reception::begin(Descriptor socket, const Address& from) {
  if (silent_.size() >= most_silent(descriptor_limit())) push_out(silent_);
  const Id id = next_id_++;
  try {
    watch(socket.number(), id, EPOLLIN | EPOLLRDHUP, false);
  } catch (const std::system_error&) {
    return;
  }
  silent_.emplace(id,
                  Caller{std::move(socket), from, GreetingListener(*rules_.greeting), Clock::now() + rules_.patience});
  hear(id);
}

Reception::Callers* Reception::callers_with(Id id) {
  if (silent_.contains(id)) return &silent_;
  return greeting_.contains(id) ? &greeting_ : nullptr;  // null: an earlier event of this turn has ended it
}

void Reception::hear(Id id) {
  while (Callers* const callers = callers_with(id)) {
    Caller& c = callers->at(id);
    try {
      if (!read_some(c)) return;
      if (c.greeting.expects_answer()) {
        answer(c);
        if (greeting_.size() >= rules_.most_greeting(descriptor_limit())) push_out(greeting_);
        greeting_.insert(silent_.extract(id));
      }
    } catch (const ProtocolError& why) {
      return refuse(*callers, id, why);
    }
    if (!c.greeting.proven()) continue;
    epoll_ctl(poll_.number(), EPOLL_CTL_DEL, c.socket.number(), nullptr);
    ProvenCaller proven{std::move(c.socket), c.from, std::move(c.greeting)};
    callers->erase(id);
    return rules_.admit(std::move(proven));
  }
}

// False: nothing is there yet.
bool Reception::read_some(Caller& c) {
  std::array<std::byte, 256> bytes;
  const ssize_t got = recv(c.socket.number(), bytes.data(), std::min(bytes.size(), c.greeting.wanted()), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) throw ProtocolError(left_early);
  c.greeting.take(std::span(bytes).first(static_cast<std::size_t>(got)));
  return true;
}

void Reception::answer(Caller& c) {
  const Bytes answer = c.greeting.answer(rules_.secret(c.greeting.terms()));
  tune(c.socket);
  // The answer fits into a new connection's empty buffer: if it does not, the connection has ended.
  if (send(c.socket.number(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
      static_cast<ssize_t>(answer.size()))
    throw ProtocolError(left_early);
}

// The verdict is sent last: when the caller receives it, `refused` has been called.
void Reception::refuse(Callers& callers, Id id, const ProtocolError& why) {
  const auto refused = callers.extract(id);
  const Caller& c = refused.mapped();
  rules_.refused(c.from, why);
  if (why.verdict != Verdict::none)  // best effort: it fits, or the other end has gone
    send(c.socket.number(), &why.verdict, sizeof why.verdict, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Under a flood of connections, closes the oldest of those that have proven nothing.
bool Reception::push_out(Callers& callers) {
  if (callers.empty()) return false;
  refuse(callers, callers.begin()->first, ProtocolError("too many connections, and this one had proven nothing"));
  return true;
}

void Reception::expire() {
  const Deadline now = Clock::now();
  if (deaf_until_ > Deadline::min() && now >= deaf_until_) {
    deaf_until_ = Deadline::min();
    watch_listening(EPOLLIN);
  }
  for (Callers* all : {&silent_, &greeting_})
    while (!all->empty() && all->begin()->second.until <= now)
      refuse(*all, all->begin()->first, ProtocolError("it has not proven itself in time"));
}

}  // namespace trellis::net
