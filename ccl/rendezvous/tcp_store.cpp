#include "ccl/rendezvous/tcp_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "ccl/rendezvous/tcp_message.h"

namespace trellis::ccl {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds place_patience{1'000};     // with a place that does not answer, while there are others
constexpr milliseconds answer_patience{2'000};    // with a server that should have answered by the deadline
constexpr milliseconds request_patience{30'000};  // for a set or an add, which have no deadline of their own
constexpr milliseconds shortest_pause{1}, longest_pause{50};

enum class Found { store, nobody, silence, stranger, other_secret };  // the later, the more it tells of a failure

struct Attempt {
  Found found = Found::nobody;
  Descriptor socket = {};
  std::string why = "";
};

Attempt greet(Descriptor socket, const std::string& secret, Deadline deadline) {
  Nonce clients, servers;
  fill_random(clients);
  std::array<std::byte, answer_bytes> answer;
  try {
    if (!send_before(socket, hello(clients), deadline) || !receive_before(socket, answer, deadline))
      return {Found::silence, {}, "something that does not answer"};
    std::copy_n(answer.begin(), servers.size(), servers.begin());
    if (!equal_in_constant_time(std::span(answer).last<sizeof(Digest)>(),
                                proof(Side::server, secret, clients, servers)))
      return {Found::other_secret, {}, "a store with another secret, or no store of this library"};
    if (!send_before(socket, proof(Side::client, secret, clients, servers), deadline))
      return {Found::silence, {}, "something that does not answer"};
  } catch (const std::system_error& error) {
    if (error.code().value() != ECONNRESET && error.code().value() != EPIPE) throw;
    return {Found::stranger, {}, "something that closes the connection: a full store, or no store of this library"};
  }
  return {Found::store, std::move(socket), ""};
}

Attempt try_place(const Endpoint& place, const std::string& secret, Deadline deadline) {
  Descriptor socket = connect_before(place, deadline);
  if (!socket) return {errno == ETIMEDOUT ? Found::silence : Found::nobody, {}, std::strerror(errno)};
  return greet(std::move(socket), secret, deadline);
}

class TcpStore : public Store {
 public:
  TcpStore(StoreSearch search, Deadline deadline) : search_(std::move(search)) { idle_.push_back(find(deadline)); }

  void set(std::string_view key, std::span<const std::byte> value) override {
    ask({.verb = Verb::set, .key = std::string(key), .value = Bytes(value.begin(), value.end())},
        Clock::now() + request_patience);
  }

  Bytes get(std::string_view key, Deadline deadline) override {
    const Deadline asked_at = Clock::now();
    Request request{.verb = Verb::get, .key = std::string(key)};
    while (true) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - std::min(Clock::now(), deadline));
      request.wait = std::min(left, Request::longest);
      const Deadline answered = std::max(Clock::now(), std::min(deadline, Clock::now() + request.wait));
      if (std::optional<Bytes> note = ask(request, answered + answer_patience)) return *std::move(note);
      if (Clock::now() >= deadline) throw_no_note(key, asked_at, search_.name);
    }
  }

  std::int64_t add(std::string_view key, std::int64_t amount) override {
    const std::optional<Bytes> sum =
        ask({.verb = Verb::add, .key = std::string(key), .amount = amount}, Clock::now() + request_patience);
    return sum_of(key, &*sum, 0);
  }

 private:
  Descriptor find(Deadline deadline);
  std::optional<Bytes> ask(const Request&, Deadline);
  std::optional<Reply> exchange(const Descriptor&, const Request&, Deadline) const;
  Descriptor connection(Deadline);

  StoreSearch search_;
  std::mutex mutex_;
  std::vector<Descriptor> idle_;  // each call has a connection for itself, so that one that waits stops no other
};

Descriptor TcpStore::find(Deadline deadline) {
  milliseconds pause = shortest_pause;
  std::string told = "nothing was tried";
  do {
    Found most = Found::store;  // of this round: one place of another job hides among several where nobody is
    for (const Endpoint& place : search_.places) {
      const bool only = search_.places.size() == 1;
      Attempt a = try_place(place, search_.secret, only ? deadline : std::min(deadline, Clock::now() + place_patience));
      if (a.found == Found::store) {
        search_.places = {place};  // the others are no longer of interest: more connections go to the same server
        return std::move(a.socket);
      }
      if (a.found > most) told = fmt::format("at {}: {}", place.text(), a.why);
      most = std::max(most, a.found);
      if (a.found == Found::other_secret && search_.strangers_end_it)
        throw std::system_error(EACCES, std::generic_category(), fmt::format("{}, {}", search_.name, told));
    }
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, std::max(deadline - Clock::now(), Clock::duration{})));
    pause = std::min(pause * 2, longest_pause);
  } while (Clock::now() < deadline);
  throw TimedOut(fmt::format("{} was not found in time; {}", search_.name, told));
}

Descriptor TcpStore::connection(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Descriptor socket = std::move(idle_.back());
      idle_.pop_back();
      return socket;
    }
  }
  Attempt a = try_place(search_.places.front(), search_.secret, deadline);
  if (a.found == Found::silence) throw TimedOut(fmt::format("{} does not answer", search_.name));
  if (a.found != Found::store)
    throw std::system_error(ECONNRESET, std::generic_category(),
                            fmt::format("{} has ended; at {}: {}", search_.name, search_.places.front().text(), a.why));
  return std::move(a.socket);
}

// Nothing: the wait of a get was over.
std::optional<Bytes> TcpStore::ask(const Request& request, Deadline deadline) {
  Descriptor socket = connection(deadline);
  const std::optional<Reply> reply = exchange(socket, request, deadline);
  if (!reply) throw TimedOut(fmt::format("{} does not answer: its process is stopped or unreachable", search_.name));
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(socket));
  }
  const std::string text = text_of(reply->content);
  if (reply->outcome == Outcome::wrong) throw std::invalid_argument(text);
  if (reply->outcome == Outcome::full)
    throw std::system_error(ENOSPC, std::generic_category(), fmt::format("{}: {}", search_.name, text));
  return reply->outcome == Outcome::not_yet ? std::nullopt : std::optional(reply->content);
}

std::optional<Reply> TcpStore::exchange(const Descriptor& socket, const Request& request, Deadline deadline) const {
  try {
    std::array<std::byte, length_bytes> length;
    if (!send_before(socket, frame_of(request), deadline) || !receive_before(socket, length, deadline)) return {};
    Bytes body(body_bytes(length));
    if (!receive_before(socket, body, deadline)) return {};
    return reply_in(body);
  } catch (const Refused& reason) {
    throw std::system_error(EPROTO, std::generic_category(), fmt::format("{} sent {}", search_.name, reason.what()));
  } catch (const std::system_error& error) {
    throw std::system_error(error.code(), fmt::format("{} has ended, or turned this process away", search_.name));
  }
}

}  // namespace

std::shared_ptr<Store> find_tcp_store(StoreSearch search, Deadline deadline) {
  return std::make_shared<TcpStore>(std::move(search), deadline);
}

std::shared_ptr<Store> tcp_store(const std::string& host, int port, const std::string& secret, Deadline deadline) {
  if (port < 1 || port > 65535) throw std::invalid_argument(fmt::format("port {}: expected 1 to 65535", port));
  return find_tcp_store(
      {.places = endpoints_of(host, port), .secret = secret, .name = fmt::format("the store at {}:{}", host, port)},
      deadline);
}

}  // namespace trellis::ccl
