#include "ccl/rendezvous/tcp/store_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "ccl/rendezvous/tcp/authenticated_frame.h"
#include "ccl/rendezvous/tcp/message.h"
#include "device/fork_mark.h"
#include "text/refuse.h"

namespace trellis::ccl {
namespace {

using net::ProtocolError;
using std::chrono::milliseconds;

constexpr milliseconds place_patience{1'000};   // for an address that does not answer, while there are others
constexpr milliseconds answer_patience{2'000};  // for a server that should have answered by the deadline
constexpr milliseconds least_request_patience{1'000}, most_request_patience{30'000};
constexpr milliseconds farewell{1'000};
constexpr milliseconds shortest_pause{1}, longest_pause{50};

enum class Found { store, nobody, silence, stranger, gone, elsewhere, other_secret };  // later ones tell more

// A connection whose two ends have authenticated each other.
struct Link {
  net::Descriptor socket;
  FrameChain sent, heard;
};

struct Attempt {
  Found found = Found::nobody;
  std::string why = "";
  int error = ECONNRESET;  // why there is no connection
  std::optional<Link> link = {};
};

// The next reply; empty: none came in time.
std::optional<Reply> reply_over(Link& link, Deadline deadline) {
  std::array<std::byte, length_bytes> length;
  if (!net::receive_before(link.socket, length, deadline)) return {};
  Bytes body(body_bytes(length));
  std::array<std::byte, code_bytes> code;
  if (!net::receive_before(link.socket, body, deadline) || !net::receive_before(link.socket, code, deadline)) return {};
  link.heard.check(body, code);
  return reply_in(body);
}

Attempt turned_away(const ProtocolError& why) {
  switch (why.verdict) {
    case net::Verdict::other_secret:
      return {Found::other_secret, "a store with another secret"};
    case net::Verdict::elsewhere:
      return {Found::elsewhere, "something that passes connections on to a store at another port"};
    case net::Verdict::gone:
      return {Found::gone, "a process that does not keep this store, or no longer"};
    case net::Verdict::none:
      return {Found::stranger, "something that does not know the secret"};
    default:
      return {Found::stranger, "something that is no store of this library"};
  }
}

Attempt greet(net::Descriptor socket, const net::Address& place, const StoreClientOptions& search, Deadline deadline) {
  const auto silence = [] { return Attempt{Found::silence, "something that does not answer"}; };
  const StoreHello hello{.store = search.store, .port = static_cast<std::uint16_t>(place.port())};
  net::GreetingCaller calling(store_greeting, search.secret, hello.terms());
  try {
    try {
      if (!net::greet(socket, calling, deadline)) return silence();
    } catch (const ProtocolError& why) {
      return turned_away(why);
    }
    const net::Transcript& said = calling.transcript();
    Link link{std::move(socket), FrameChain(said.key(net::Side::caller)), FrameChain(said.key(net::Side::listener))};
    if (!reply_over(link, deadline)) return silence();  // the admission
    return {.found = Found::store, .link = std::move(link)};
  } catch (const ProtocolError&) {
    return {Found::stranger, "something that changes what a store sends"};
  } catch (const std::system_error& error) {
    if (error.code().value() != ECONNRESET && error.code().value() != EPIPE) throw;
    return {Found::stranger, "something that closes the connection: a full store, or no store of this library"};
  }
}

Attempt try_place(const net::Address& place, const StoreClientOptions& search, Deadline deadline) {
  net::Descriptor socket = net::connect_before(place, deadline);
  const int error = errno;
  if (!socket && error == ECONNREFUSED && search.was_there) return {Found::gone, std::strerror(error)};
  if (!socket) return {error == ETIMEDOUT ? Found::silence : Found::nobody, std::strerror(error), error};
  return greet(std::move(socket), place, search, deadline);
}

class TcpStore : public Store {
 public:
  TcpStore(StoreClientOptions search, Deadline deadline)
      : search_(std::move(search)),
        request_patience_(
            search_.patience.count() != 0
                ? search_.patience
                : std::clamp<Clock::duration>(deadline - Clock::now(), least_request_patience, most_request_patience)) {
    idle_.push_back(find(deadline));
  }

  void set(std::string_view key, std::span<const std::byte> value) override {
    ask({.verb = Verb::set, .key = std::string(key), .value = Bytes(value.begin(), value.end())},
        Clock::now() + request_patience_);
  }

  Bytes get(std::string_view key, Deadline deadline) override {
    const Deadline asked_at = Clock::now();
    StoreRequest request{.verb = Verb::get, .key = std::string(key)};
    while (true) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - std::min(Clock::now(), deadline));
      request.wait = std::min(left, StoreRequest::longest);
      const Deadline answered = std::max(Clock::now(), std::min(deadline, Clock::now() + request.wait));
      if (std::optional<Bytes> note = ask(request, answered + answer_patience)) return *std::move(note);
      if (Clock::now() >= deadline) throw_no_note(key, asked_at, search_.name);
    }
  }

  std::int64_t add(std::string_view key, std::int64_t amount) override {
    const std::optional<Bytes> sum =
        ask({.verb = Verb::add, .key = std::string(key), .amount = amount}, Clock::now() + request_patience_);
    return sum_of(key, &*sum, 0);
  }

  // Sent without waiting for a reply: it goes out before the connection is closed, or the server has gone too.
  void leave(std::string_view prefix, std::int64_t members) override {
    const Deadline deadline = Clock::now() + farewell;
    try {
      Link link = this->link(deadline);
      net::send_before(link.socket,
                       link.sent.frame(body_of({.verb = Verb::leave, .key = std::string(prefix), .amount = members})),
                       deadline);
      const std::lock_guard lock(mutex_);
      idle_.push_back(std::move(link));
    } catch (const std::exception&) {
    }
    const std::lock_guard lock(mutex_);
    if (prefix.empty()) idle_.clear();
  }

  std::string secret() const override { return search_.secret; }

 private:
  Link find(Deadline deadline);
  std::optional<Bytes> ask(const StoreRequest&, Deadline);
  std::optional<Reply> exchange(Link&, const Bytes& request, Deadline) const;
  Link link(Deadline);

  StoreClientOptions search_;
  const Clock::duration request_patience_;
  std::mutex mutex_;
  device::ForkMark mark_;   // of idle_
  std::vector<Link> idle_;  // each call has a connection of its own, so that one that waits does not block others
};

Link TcpStore::find(Deadline deadline) {
  milliseconds pause = shortest_pause;
  std::string told = "nothing was tried";
  // The attempt's result that `told` describes. Only one that tells at least as much replaces it: a refusal is reported
  // even if the server has ended since.
  Found ever = Found::store;
  do {
    Found most = Found::store;  // this round's result that tells most: at some addresses, other jobs may listen
    for (const net::Address& place : search_.places) {
      const bool only = search_.places.size() == 1;
      Attempt a = try_place(place, search_, only ? deadline : std::min(deadline, Clock::now() + place_patience));
      if (a.found == Found::store) {
        search_.places = {place};  // drops the other addresses: further connections go to the same server
        return *std::move(a.link);
      }
      if (a.found > most && a.found >= ever) {
        told = fmt::format("at {}: {}", place.text(), a.why);
        if (a.found == Found::gone) told += "; its process has not begun, or has ended";
        ever = a.found;
      }
      most = std::max(most, a.found);
      if (a.found >= Found::elsewhere && search_.strangers_end_it)
        throw std::system_error(EACCES, std::generic_category(), fmt::format("{}, {}", search_.name, told));
      if (a.found == Found::gone && only && search_.was_there)
        throw std::system_error(
            ECONNREFUSED, std::generic_category(),
            fmt::format("{}, at {}, has ended: its process has ended or given up", search_.name, place.text()));
    }
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, std::max(deadline - Clock::now(), Clock::duration{})));
    pause = std::min(pause * 2, longest_pause);
  } while (Clock::now() < deadline);
  throw TimedOut(fmt::format("{} was not found in time; {}", search_.name, told));
}

// Opens another connection when all are in use. Tries again if the server closes it, as it may when strangers flood it
// with connections. A forked process opens its own: with a shared one, both processes would number their frames alike.
Link TcpStore::link(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (mark_.forked()) {
      idle_.clear();
      mark_ = {};
    }
    if (!idle_.empty()) {
      Link link = std::move(idle_.back());
      idle_.pop_back();
      return link;
    }
  }
  milliseconds pause = shortest_pause;
  while (true) {
    Attempt a = try_place(search_.places.front(), search_, deadline);
    if (a.found == Found::store) return *std::move(a.link);
    if (a.found == Found::silence) throw TimedOut(fmt::format("{} does not answer", search_.name));
    if (a.found != Found::stranger || Clock::now() + pause >= deadline)
      throw std::system_error(
          a.error, std::generic_category(),
          fmt::format("{} has ended; at {}: {}", search_.name, search_.places.front().text(), a.why));
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, longest_pause);
  }
}

// Empty: the request was a get, and its key was not set while the server held it.
std::optional<Bytes> TcpStore::ask(const StoreRequest& request, Deadline deadline) {
  const Bytes body = body_of(request);
  Link link = this->link(deadline);
  const std::optional<Reply> reply = exchange(link, body, deadline);
  if (!reply) throw TimedOut(fmt::format("{} does not answer: its process is stopped or unreachable", search_.name));
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(link));
  }
  const std::string text = text_of(reply->content);
  if (reply->outcome == StoreOutcome::wrong) throw std::invalid_argument(text);
  if (reply->outcome == StoreOutcome::full)
    throw std::system_error(ENOSPC, std::generic_category(), fmt::format("{}: {}", search_.name, text));
  return reply->outcome == StoreOutcome::not_yet ? std::nullopt : std::optional(reply->content);
}

std::optional<Reply> TcpStore::exchange(Link& link, const Bytes& request, Deadline deadline) const {
  try {
    return net::send_before(link.socket, link.sent.frame(request), deadline) ? reply_over(link, deadline)
                                                                             : std::nullopt;
  } catch (const ProtocolError& reason) {
    throw std::system_error(EPROTO, std::generic_category(), fmt::format("{} sent {}", search_.name, reason.what()));
  } catch (const std::system_error& error) {
    throw std::system_error(error.code(), fmt::format("{} has ended, or turned this process away", search_.name));
  }
}

}  // namespace

std::shared_ptr<Store> find_tcp_store(StoreClientOptions search, Deadline deadline) {
  return std::make_shared<TcpStore>(std::move(search), deadline);
}

std::shared_ptr<Store> tcp_store(const std::string& host, int port, const std::string& secret, Deadline deadline) {
  if (port < 1 || port > 65535) text::refuse("port {}: expected 1 to 65535", port);
  return find_tcp_store({.places = net::addresses_of(host, port),
                         .secret = secret,
                         .name = fmt::format("the store at {}:{}", host, port)},
                        deadline);
}

}  // namespace trellis::ccl
