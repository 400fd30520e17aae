#include "ccl/rendezvous/tcp/loop.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "ccl/descriptor_limit.h"
#include "ccl/thread_without_signals.h"

namespace trellis::ccl {
namespace {

using net::ProtocolError;

constexpr std::uint64_t reception_id = 0, woken_id = 1;
constexpr auto patience = std::chrono::seconds(30);  // for a known client in the middle of a frame

std::system_error failure(const char* what) { return {errno, std::generic_category(), what}; }

}  // namespace

StoreLoop::StoreLoop(StoreServerOptions serving, std::optional<std::chrono::milliseconds> linger)
    : serving_(std::move(serving)),
      reception_({.greeting = &store_greeting,
                  .secret = [this](auto terms) { return secret_of(terms); },
                  .admit = [this](net::ProvenCaller caller) { admit(std::move(caller)); },
                  .refused = [this](auto& from, auto& why) { tell_of_refusal(from, why); },
                  .raise_limit = [this] { return raise_limit(); },
                  .patience = serving_.greeting,
                  .most_greeting = most_greeting}),
      poll_(epoll_create1(EPOLL_CLOEXEC)),
      woken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stores_(linger, [this] { wake(); }) {
  if (!poll_ || !woken_) throw failure("a store's server");
  net::Descriptor listening = net::listen_at(serving_.address, serving_.port);
  port_ = net::local_address(listening).port();
  reception_.listen(std::move(listening));
  watch(reception_.descriptor(), reception_id, EPOLLIN, false);
  watch(woken_.number(), woken_id, EPOLLIN, false);
}

void StoreLoop::stop() {
  stopping_.store(true);
  wake();
}

void StoreLoop::wake() const {
  const std::uint64_t one = 1;
  if (write(woken_.number(), &one, sizeof one) < 0) return;  // full: it is awake already
}

void StoreLoop::give_up() {
  stores_.close();
  connections_.clear();
  reception_.close();
}

void StoreLoop::run() {
  std::array<epoll_event, 64> events;
  while (!stopping_.load()) {
    const int count = epoll_wait(poll_.number(), events.data(), events.size(), milliseconds_to_sleep());
    if (count < 0 && errno != EINTR) throw failure("a store's server");
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == woken_id)
        hear_changes();
      else if (events[i].data.u64 != reception_id)
        handle(events[i].data.u64, events[i].events);
    }
    reception_.turn();  // after existing connections
    expire();
    if (stores_.expire([this] { reception_.close(); })) return;
  }
}

int StoreLoop::milliseconds_to_sleep() const {
  Deadline first = std::min(stores_.next(), reception_.next());
  if (!deadlines_.empty()) first = std::min(first, deadlines_.begin()->first);
  return net::milliseconds_until(first);
}

void StoreLoop::tell(const StoreName& store, std::string_view key) {
  {
    const std::lock_guard lock(mutex_);
    changes_.push_back({store, std::string(key)});
  }
  wake();
}

void StoreLoop::hear_changes() {
  std::uint64_t times = 0;
  if (read(woken_.number(), &times, sizeof times) < 0) return;
  std::vector<Change> changes;
  {
    const std::lock_guard lock(mutex_);
    changes.swap(changes_);
  }
  for (const Change& change : changes)
    if (const ServedStores::Use store = stores_.use(change.store)) wake_waiting(*store, change.key);
}

void StoreLoop::watch(int number, Id id, std::uint32_t events, bool known_already) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(poll_.number(), known_already ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, number, &event) != 0)
    throw failure("watching a connection");
}

// The secret that a client must know for the store that its hello names. Asking for it does not use the store: only an
// authenticated connection counts as a user.
std::string StoreLoop::secret_of(std::span<const std::byte> terms) {
  const StoreHello hello = StoreHello::in(terms);
  const std::optional<std::string> secret = stores_.secret_of(hello.store);
  if (!secret) throw ProtocolError("a client of a store that is not kept here, or no longer", net::Verdict::gone);
  if (hello.port != port_)
    throw ProtocolError(fmt::format("a client that has called at port {}, not at {}: something passes connections on",
                                    hello.port, port_),
                        net::Verdict::elsewhere);
  return *secret;
}

bool StoreLoop::raise_limit() {
  if (raise_descriptor_limit()) return true;
  if (!std::exchange(told_of_limit_, true) && serving_.on_refusal)
    serving_.on_refusal(fmt::format(
        "a connection besides {} others: this process may have {} descriptors (ulimit -n), expected one for "
        "each rank",
        connections_.size(), net::descriptor_limit()));
  return false;
}

void StoreLoop::admit(net::ProvenCaller caller) {
  ServedStores::Use store = stores_.use(StoreHello::in(caller.greeting.terms()).store);
  if (!store) return tell_of_refusal(caller.from, ProtocolError("a client of a store that has just been left"));
  const Id id = next_++;
  Connection& c = connections_
                      .emplace(id, Connection{.socket = std::move(caller.socket),
                                              .from = caller.from,
                                              .session = StoreServerCodec(caller.greeting.transcript()),
                                              .store = std::move(store)})
                      .first->second;
  ending_on_failure(id, [&] {
    watch(c.socket.number(), id, c.watched, false);
    queue(c, c.session.frame_of(Reply{}));  // tells the client that it is admitted
    serve(id, c);
  });
}

// Ends the connection if its work fails: it is refused if the client has broken the protocol.
template <class Work>
void StoreLoop::ending_on_failure(Id id, Work work) {
  try {
    work();
  } catch (const ProtocolError& reason) {
    refuse(id, reason);
  } catch (const std::system_error&) {  // the connection has ended
    end(id);
  }
}

void StoreLoop::handle(Id id, std::uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;  // ended by an earlier event of this round
  Connection& c = found->second;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0 || ((events & EPOLLRDHUP) != 0 && (events & EPOLLIN) == 0)) return end(id);
  ending_on_failure(id, [&] {
    if ((events & EPOLLOUT) != 0) serve(id, c);
    if ((events & EPOLLIN) != 0) read_some(id, c);
  });
}

void StoreLoop::read_some(Id id, Connection& c) {
  std::array<std::byte, 1 << 16> bytes;
  const ssize_t got = recv(c.socket.number(), bytes.data(), bytes.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) throw failure("receiving");
  if (got == 0) {
    if (c.session.in_the_middle()) throw ProtocolError("it closed the connection in the middle of a message");
    return end(id);
  }
  c.session.take({bytes.data(), static_cast<std::size_t>(got)});
  serve(id, c);
}

// Answers complete requests, one at a time: the next one is read after the reply has left.
void StoreLoop::serve(Id id, Connection& c) {
  flush(c);
  while (c.output.empty() && c.awaited.empty()) {
    const std::optional<StoreRequest> request = c.session.request();
    if (!request) break;
    ServedStore& store = *c.store;
    if (request->verb == Verb::leave) {
      store.board.leave(request->key, request->amount);
      continue;
    }
    if (request->verb == Verb::get && request->wait.count() > 0) {
      c.awaited = request->key;  // before the lookup: if the key is set right after it, wake_waiting() finds this get
      store.waiting[request->key].insert(id);
      if (!store.board.find(request->key)) {
        set_deadline(id, c, Clock::now() + request->wait);
        break;
      }
      wait_no_more(id, c);
    }
    queue(c, c.session.frame_of(reply_to(store, *request)));
    flush(c);
    if (request->verb != Verb::get) wake_waiting(store, request->key);
  }
  settle(id, c);
}

Reply StoreLoop::reply_to(ServedStore& store, const StoreRequest& r) {
  const auto text = [](const std::exception& e) {
    const auto bytes = net::bytes_of(e.what());
    return Bytes(bytes.begin(), bytes.end());
  };
  try {
    if (r.verb == Verb::set) {
      store.board.set(r.key, r.value);
      return {};
    }
    if (r.verb == Verb::add) return {StoreOutcome::done, counter_of(store.board.add(r.key, r.amount))};
    std::optional<Bytes> note = store.board.find(r.key);
    return note ? Reply{StoreOutcome::done, *std::move(note)} : Reply{StoreOutcome::not_yet};
  } catch (const std::invalid_argument& e) {
    return {StoreOutcome::wrong, text(e)};
  } catch (const std::system_error& e) {
    return {StoreOutcome::full, text(e)};
  }
}

void StoreLoop::wake_waiting(ServedStore& store, const std::string& key) {
  const auto found = store.waiting.find(key);
  if (found == store.waiting.end()) return;
  const std::optional<Bytes> note = store.board.find(key);
  if (!note) return;
  const std::set<Id> ids = std::move(found->second);
  store.waiting.erase(found);
  const Reply reply{StoreOutcome::done, *note};
  for (Id id : ids) {
    Connection& c = connections_.at(id);
    c.awaited.clear();
    queue(c, c.session.frame_of(reply));
    ending_on_failure(id, [&] {
      flush(c);
      settle(id, c);
    });
  }
}

void StoreLoop::wait_no_more(Id id, Connection& c) {
  if (c.awaited.empty()) return;
  const auto waits = c.store->waiting.find(c.awaited);
  waits->second.erase(id);
  if (waits->second.empty()) c.store->waiting.erase(waits);
  c.awaited.clear();
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

// Updates what to poll for and until when. Call it after every change of the connection's state.
void StoreLoop::settle(Id id, Connection& c) {
  const bool reads = c.output.empty() && c.awaited.empty();
  const std::uint32_t events = EPOLLRDHUP | (reads ? EPOLLIN : 0U) | (c.output.empty() ? 0U : EPOLLOUT);
  if (events != c.watched) watch(c.socket.number(), id, c.watched = events, true);
  if (!c.awaited.empty()) return;
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
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const Id id = deadlines_.begin()->second;
    Connection& c = connections_.at(id);
    ending_on_failure(id, [&] {
      if (c.awaited.empty()) throw ProtocolError("it stopped in the middle of a message");
      wait_no_more(id, c);
      queue(c, c.session.frame_of(Reply{StoreOutcome::not_yet}));
      serve(id, c);
    });
  }
}

void StoreLoop::end(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& c = found->second;
  deadlines_.erase({c.until, id});
  wait_no_more(id, c);
  connections_.erase(found);
}

void StoreLoop::refuse(Id id, const ProtocolError& why) {
  tell_of_refusal(connections_.at(id).from, why);
  end(id);  // last: when the client sees the end of the connection, the refusal is already counted
}

void StoreLoop::tell_of_refusal(const net::Address& from, const ProtocolError& why) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  if (serving_.on_refusal) serving_.on_refusal(fmt::format("{}: {}", from.text(), why.what()));
}

std::thread serving_thread(std::shared_ptr<StoreLoop> loop) {
  return thread_without_signals([loop = std::move(loop)] {
    try {
      loop->run();
    } catch (const std::exception&) {  // no memory or no descriptors
      loop->give_up();
    }
  });
}

}  // namespace trellis::ccl
