#include "device/messages/listener.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>

#include "device/environment.h"
#include "device/messages/descriptors.h"
#include "device/messages/failure.h"

namespace trellis::device {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto turn_time = 50ms;
constexpr auto greeting_time = 5s;
constexpr int most_accepted = 64;  // in one turn
constexpr int most_tries = 10;     // of a greeting
constexpr auto between_tries = 100ms;
constexpr auto pause_without_descriptors = 100ms;

}  // namespace

std::string secret_of_job() { return value_of_variable("TRELLIS_SECRET"); }

void expect_secret_for(const std::string& host, std::string_view secret) {
  if (secret.empty() && canonical(host) != loopback)
    fail_with(std::errc::permission_denied,
              "{} is another host, and without a secret its processes cannot prove that they are of this job: set "
              "TRELLIS_SECRET, the same for all",
              host);
}

namespace {

void greet(Socket& s, const CallHello& hello, const Address& listener, Deadline deadline,
           const std::function<bool()>& go_on) {
  const Calling calling(secret_of_job(), hello);
  std::array<std::byte, call_answer_bytes> answer;
  try {
    s.send(calling.hello(), deadline, go_on);
    s.receive(answer, deadline, go_on);
    s.send(calling.proof(answer), deadline, go_on);
  } catch (const Stranger& e) {
    fail_with(std::errc::permission_denied, "what listens at {}:{}: {}", listener.host, listener.port, e.what());
  } catch (const std::system_error& e) {
    if (e.code() != std::errc::connection_reset && e.code() != std::errc::broken_pipe) throw;
    fail_with(std::errc::permission_denied,
              "what listens at {}:{} ended the greeting: it is another program's, or a job's with another "
              "TRELLIS_SECRET",
              listener.host, listener.port);
  }
}

}  // namespace

Socket call(const CallHello& hello, const Address& listener, Deadline deadline, const std::function<bool()>& go_on) {
  for (int tries = 1;; ++tries) {
    Socket s = Socket::connect(listener, deadline, go_on);
    try {
      greet(s, hello, listener, deadline, go_on);
      return s;
    } catch (const std::system_error& e) {
      if (e.code() != std::errc::permission_denied || tries == most_tries) throw;
    }
    std::this_thread::sleep_for(between_tries);
  }
}

CallListener::CallListener(const Address& at, Answering answering) : answering_(std::move(answering)) {
  listen_at(at);
  thread_ = std::thread([this] { work(); });
}

CallListener::~CallListener() {
  ending_ = true;
  thread_.join();
}

void CallListener::listen_at(const Address& at) {
  Socket one = Socket::listen(at);
  const std::lock_guard lock(mutex_);
  listening_.push_back(std::move(one));
}

void CallListener::work() {
  while (!ending_) {
    try {
      turn();
      answering_.meanwhile();
    } catch (const std::exception&) {  // no memory or no descriptors at the moment
      std::this_thread::sleep_for(turn_time);
    }
  }
}

void CallListener::turn() {
  std::vector<pollfd> all;
  std::vector<Socket*> listening;
  {
    const std::lock_guard lock(mutex_);
    for (Socket& one : listening_) listening.push_back(&one);
  }
  for (const Socket* one : listening) all.push_back({one->fd(), POLLIN, 0});
  for (const Unproven& one : unproven_) all.push_back({one.socket.fd(), POLLIN, 0});
  poll(all.data(), all.size(), static_cast<int>(turn_time.count()));
  const auto now = steady_clock::now();
  auto polled = all.begin() + static_cast<std::ptrdiff_t>(listening.size());
  for (auto at = unproven_.begin(); at != unproven_.end(); ++polled) {
    const bool stays = polled->revents == 0 ? now < at->until : hear(*at);
    at = stays ? std::next(at) : unproven_.erase(at);
  }
  for (std::size_t i = 0; i < listening.size(); ++i)
    if (all[i].revents != 0) accept(*listening[i]);
}

bool CallListener::hear(Unproven& one) {
  try {
    std::byte bytes[call_hello_bytes];
    while (!one.greeting.proven()) {
      const auto got = one.socket.receive_some(std::span(bytes).first(one.greeting.wanted()));
      if (!got) return true;
      const CallBytes answer = one.greeting.take(std::span(bytes).first(*got));
      if (!answer.empty() && !one.socket.send_at_once(answer)) return false;
    }
    std::string from = one.socket.peer();
    answering_.arrived({one.greeting.hello(), std::move(from), std::move(one.socket)});
  } catch (const std::exception&) {  // a stranger, or one that has gone
  }
  return false;
}

void CallListener::accept(Socket& listening) {
  for (int i = 0; i < most_accepted; ++i) {
    Socket s = listening.accept();
    if (!s) {
      if (errno == EMFILE || errno == ENFILE) {
        if (!unproven_.empty()) unproven_.pop_front();
        std::this_thread::sleep_for(pause_without_descriptors);
      }
      return;
    }
    make_room();
    unproven_.push_back(
        {std::move(s), Welcome(secret_, answering_.kind, answering_.to), steady_clock::now() + greeting_time});
    if (!hear(unproven_.back())) unproven_.pop_back();
  }
}

// The oldest of those that have said nothing valid goes first.
void CallListener::make_room() {
  if (unproven_.size() < most_silent(descriptor_limit())) return;
  const auto silent = std::ranges::find_if(unproven_, [](const Unproven& one) { return !one.greeting.greeted(); });
  unproven_.erase(silent == unproven_.end() ? unproven_.begin() : silent);
}

}  // namespace trellis::device
