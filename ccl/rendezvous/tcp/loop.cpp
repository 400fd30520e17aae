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

constexpr std::uint64_t listener_id = 0, woken_id = 1;
constexpr int most_accepted = 16;                         // connections in a row; then earlier ones are served
constexpr auto patience = std::chrono::seconds(30);       // for a known client in the middle of a frame
constexpr auto deaf_for = std::chrono::milliseconds(50);  // when no descriptors are left

std::system_error failure(const char* what) { return {errno, std::generic_category(), what}; }

}  // namespace

StoreLoop::StoreLoop(TcpStoreServing serving, std::optional<std::chrono::milliseconds> linger)
    : serving_(std::move(serving)),
      listener_(listen_at(serving_.address, serving_.port)),
      poll_(epoll_create1(EPOLL_CLOEXEC)),
      woken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stores_(linger, [this] { wake(); }) {
  if (!poll_ || !woken_) throw failure("a store's server");
  port_ = local_endpoint(listener_).port();
  watch(listener_.number(), listener_id, EPOLLIN, false);
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
  listener_ = Descriptor();
}

void StoreLoop::run() {
  std::array<epoll_event, 64> events;
  while (!stopping_.load()) {
    const int count = epoll_wait(poll_.number(), events.data(), events.size(), milliseconds_to_sleep());
    if (count < 0 && errno != EINTR) throw failure("a store's server");
    bool called = false;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == listener_id)
        called = true;
      else if (events[i].data.u64 == woken_id)
        hear_changes();
      else
        handle(events[i].data.u64, events[i].events);
    }
    if (called) accept_some();  // after existing connections
    expire();
    if (stores_.expire([this] { listener_ = Descriptor(); })) return;
  }
}

int StoreLoop::milliseconds_to_sleep() const {
  Deadline first = stores_.next();
  if (!deadlines_.empty()) first = std::min(first, deadlines_.begin()->first);
  if (deaf_until_ > Deadline::min()) first = std::min(first, deaf_until_);
  return milliseconds_until(first);
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
    if (const KeptStores::Use store = stores_.use(change.store)) wake_waiting(*store, change.key);
}

void StoreLoop::watch(int number, Id id, std::uint32_t events, bool known_already) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(poll_.number(), known_already ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, number, &event) != 0)
    throw failure("watching a connection");
}

void StoreLoop::accept_some() {
  for (int times = 0; times < most_accepted; ++times) {
    Endpoint from;
    from.length = sizeof from.address;
    Descriptor socket(accept4(listener_.number(), reinterpret_cast<sockaddr*>(&from.address), &from.length,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      begin(std::move(socket), from);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      const bool own_limit = errno == EMFILE;
      if (push_out(silent_) || (own_limit && raise_descriptor_limit())) continue;
      if (own_limit) tell_of_limit();
      deaf_until_ = Clock::now() + deaf_for;
      return watch(listener_.number(), listener_id, 0, true);
    }  // any other error concerns a connection that has ended
  }
}

void StoreLoop::tell_of_limit() {
  if (told_of_limit_ || !serving_.on_refusal) return;
  told_of_limit_ = true;
  serving_.on_refusal(
      fmt::format("a connection besides {} others: this process may have {} descriptors (ulimit -n), expected one for "
                  "each rank",
                  connections_.size(), descriptor_limit()));
}

// Reads at once: the hello has probably arrived, and a connection with a hello is not closed in favour of others.
void StoreLoop::begin(Descriptor socket, const Endpoint& from) {
  if (silent_.size() >= most_silent(descriptor_limit())) push_out(silent_);
  const Id id = next_++;
  const int number = socket.number();
  Connection& c = connections_.emplace(id, Connection{.socket = std::move(socket), .from = from}).first->second;
  silent_.insert(id);
  try {
    watch(number, id, c.watched, false);
  } catch (const std::system_error&) {
    return end(id);
  }
  set_deadline(id, c, Clock::now() + serving_.greeting);
  handle(id, EPOLLIN);
}

// Under a flood of connections, closes the oldest of those that have proven nothing.
bool StoreLoop::push_out(const std::set<Id>& those) {
  if (those.empty()) return false;
  refuse(*those.begin(), Refused("too many connections, and this one had proven nothing"));
  return true;
}

void StoreLoop::handle(Id id, std::uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;  // ended by an earlier event of this round
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
    refuse(id, reason);
  } catch (const std::system_error&) {  // the connection has ended
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
  if (!c.session.greeted()) greet(id, c);
  if (c.session.known() && greeting_.erase(id) != 0) {
    set_deadline(id, c, Deadline::max());
    queue(c, c.session.frame_of(Reply{}));  // tells the client that it is admitted; until then it may be pushed out
  }
  serve(id, c);
}

// Without the right secret in its hello, a connection is not a user.
void StoreLoop::greet(Id id, Connection& c) {
  const std::optional<Hello> hello = c.session.hello();
  if (!hello) return;
  const std::optional<std::string> secret = stores_.secret_of(hello->store);
  if (!secret) throw Refused("a client of a store that is not kept here, or no longer", Verdict::gone);
  const Bytes answer = c.session.welcome(*secret, port_);
  c.store = stores_.use(hello->store);
  if (!c.store) throw Refused("a client of a store that has just been left", Verdict::gone);
  silent_.erase(id);
  if (greeting_.size() >= most_greeting(descriptor_limit())) push_out(greeting_);
  greeting_.insert(id);
  tune(c.socket);
  queue(c, answer);
}

// Answers complete requests, one at a time: the next one is read after the reply has left.
void StoreLoop::serve(Id id, Connection& c) {
  flush(c);
  while (c.output.empty() && c.awaited.empty()) {
    const std::optional<Request> request = c.session.request();
    if (!request) break;
    KeptStore& store = *c.store;
    if (request->verb == Verb::leave) {
      store.board.leave(request->key, request->amount);
      continue;
    }
    if (request->verb == Verb::get && request->wait.count() > 0) {
      c.awaited = request->key;  // before the lookup: changes from outside the loop are reported after they were made
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

Reply StoreLoop::reply_to(KeptStore& store, const Request& r) {
  const auto text = [](const std::exception& e) {
    const auto bytes = bytes_of(e.what());
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

void StoreLoop::wake_waiting(KeptStore& store, const std::string& key) {
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
    try {
      flush(c);
      settle(id, c);
    } catch (const std::system_error&) {
      end(id);
    }
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
      refuse(id,
             Refused(c.session.known() ? "it stopped in the middle of a message" : "it has not proven itself in time"));
      continue;
    }
    wait_no_more(id, c);
    queue(c, c.session.frame_of(Reply{StoreOutcome::not_yet}));
    try {
      serve(id, c);
    } catch (const Refused& reason) {
      refuse(id, reason);
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
  wait_no_more(id, c);
  silent_.erase(id);
  greeting_.erase(id);
  connections_.erase(found);
}

void StoreLoop::refuse(Id id, const Refused& why) {
  Connection& c = connections_.at(id);
  if (why.verdict != Verdict::none && c.output.empty())  // best effort: it fits, or the other end has gone
    send(c.socket.number(), &why.verdict, sizeof why.verdict, MSG_NOSIGNAL | MSG_DONTWAIT);
  refused_.fetch_add(1, std::memory_order_relaxed);
  if (serving_.on_refusal) serving_.on_refusal(fmt::format("{}: {}", c.from.text(), why.what()));
  end(id);  // last, so that a client that is disconnected finds it counted
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
