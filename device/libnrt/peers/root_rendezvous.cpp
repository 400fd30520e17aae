// The rendezvous that processes share: device 0's process serves it over TCP. A member connects anew for each meeting.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <span>

#include "device/environment_variable.h"
#include "device/libnrt/peers/rendezvous.h"
#include "device/libnrt/status_error.h"
#include "device/messages/peer_connections.h"

namespace trellis::device::nrt {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;
constexpr std::uint32_t most_text = 4096, most_members = 1 << 16;

// Seconds, as NEURON_RT_EXEC_TIMEOUT gives them; 30 without.
std::chrono::milliseconds timeout_of_environment() {
  const std::string text = value_of_variable("NEURON_RT_EXEC_TIMEOUT");
  const int seconds = text.empty() ? 30 : std::atoi(text.c_str());
  if (seconds < 1 || seconds > 86'400)
    refuse(Status::invalid, "NEURON_RT_EXEC_TIMEOUT={}: expected seconds from 1 to 86400", text);
  return std::chrono::seconds(seconds);
}

// The address where device 0 serves the others. Without a secret it is loopback, whichever own address was named.
net::Address place_of(const std::string& root) {
  const auto place = net::host_and_port(root);
  if (!place) refuse(Status::invalid, "'{}': expected ADDRESS:PORT, as in 10.0.1.2:46820", root);
  const net::Address own = canonical(place->first, place->second);
  const std::string secret = secret_of_job();
  expect_secret_for(own, secret);
  return secret.empty() ? own : net::addresses_of(place->first, place->second, AF_INET).front();
}

// Allocates memory as bytes arrive, not as they are announced.
void receive_growing(const net::Descriptor& s, Bytes& into, std::uint64_t bytes, const net::WaitLimit& wait) {
  constexpr std::uint64_t piece = 1 << 20;
  while (into.size() < bytes) {
    const std::size_t before = into.size();
    into.resize(before + std::min(piece, bytes - before));
    receive_all(s, std::span(into).subspan(before), wait);
  }
}

struct Head {
  std::uint32_t magic = 0x4E525431, key = 0, signature = 0, member = 0, members = 0, status = 0;
  std::uint64_t bytes = 0;
};

}  // namespace

class RootRendezvous::Server {
 public:
  Server(LocalRendezvous& hub, const net::Address& a, std::chrono::milliseconds timeout)
      : hub_(hub),
        timeout_(timeout),
        listener_(std::make_unique<ConnectionListener>(
            a, ConnectionListener::ListenerOptions{
                   .kind = ConnectionPurpose::meeting,
                   .arrived =
                       [this](ConnectionListener::Call c) {
                         begin(std::make_shared<net::Descriptor>(std::move(c.socket)));
                       },
                   .meanwhile =
                       [this] { std::erase_if(serving_, [](const Serving& one) { return one.done->load(); }); }})) {}
  ~Server() {
    ending_ = true;
    listener_.reset();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  struct Serving {
    std::shared_ptr<std::atomic<bool>> done;
    std::jthread thread;
  };
  void begin(std::shared_ptr<net::Descriptor> s) {
    auto done = std::make_shared<std::atomic<bool>>(false);
    serving_.push_back({done, std::jthread([this, s = std::move(s), done] {
                          serve(*s);
                          *done = true;
                        })});
  }
  void serve(const net::Descriptor& s) noexcept {
    const net::WaitLimit wait(net::Clock::now() + timeout_, [this] { return !ending_.load(); });
    Head head;
    try {
      receive_all(s, bytes_in(head), wait);
      if (head.magic != Head().magic || head.key > most_text || head.signature > most_text || head.bytes > most_bytes ||
          head.members > most_members)
        return;
      Contribution c{std::string(head.key, ' '), std::string(head.signature, ' '), head.member, head.members, {}};
      receive_all(s, std::as_writable_bytes(std::span(c.key)), wait);
      receive_all(s, std::as_writable_bytes(std::span(c.signature)), wait);
      receive_growing(s, c.bytes, head.bytes, wait);
      const auto all = hub_.meet(c, wait.until);
      for (const Bytes& one : all) {
        const std::uint64_t size = one.size();
        send_all(s, bytes_in(size), wait);
        send_all(s, one, wait);
      }
    } catch (const StatusError& e) {
      tell(s, e);
    } catch (...) {
      const Status status = status_of_exception("a meeting");
      tell(s, StatusError(status, last_error()));
    }
  }
  // Sends a refusal: a size that no member can have, then status and text.
  static void tell(const net::Descriptor& s, const StatusError& e) noexcept {
    try {
      const net::Deadline soon = net::Clock::now() + std::chrono::seconds(1);
      const std::uint64_t mark = ~std::uint64_t{0}, status = static_cast<std::uint64_t>(e.status);
      const std::string text = e.what();
      const std::uint64_t size = text.size();
      send_all(s, bytes_in(mark), soon);
      send_all(s, bytes_in(status), soon);
      send_all(s, bytes_in(size), soon);
      send_all(s, net::bytes_of(text), soon);
    } catch (...) {  // the peer sees that the connection ends
    }
  }

  LocalRendezvous& hub_;
  const std::chrono::milliseconds timeout_;
  std::atomic<bool> ending_ = false;
  std::list<Serving> serving_;                    // used by the listener's thread alone
  std::unique_ptr<ConnectionListener> listener_;  // last: its thread uses all members above
};

RootRendezvous::RootRendezvous()
    : root_(value_of_variable("NEURON_RT_ROOT_COMM_ID")), timeout_(timeout_of_environment()) {}
RootRendezvous::~RootRendezvous() = default;

void RootRendezvous::join(std::uint32_t id, std::uint32_t devices) {
  if (devices == 0 || id >= devices || devices > most_members)
    refuse(Status::invalid, "device {} of {}: expected one below the number of devices", id, devices);
  if (root_.empty() || id != 0) return;
  const std::lock_guard lock(mutex_);
  if (!server_) server_ = std::make_unique<Server>(hub_, place_of(root_), timeout_);
}

void RootRendezvous::stop() {
  stopped_ = true;
  hub_.stop();
}

std::vector<Bytes> RootRendezvous::meet(const Contribution& c) {
  const net::WaitLimit wait(net::Clock::now() + timeout_, [this] { return !stopped_.load(); });
  bool here = root_.empty();
  {
    const std::lock_guard lock(mutex_);
    here = here || server_ != nullptr;
  }
  if (here) return hub_.meet(c, wait.until);
  const net::Descriptor s = call({.kind = ConnectionPurpose::meeting}, place_of(root_), wait);
  const Head head{.key = static_cast<std::uint32_t>(c.key.size()),
                  .signature = static_cast<std::uint32_t>(c.signature.size()),
                  .member = c.member,
                  .members = c.members,
                  .bytes = c.bytes.size()};
  send_all(s, bytes_in(head), wait);
  send_all(s, net::bytes_of(c.key), wait);
  send_all(s, net::bytes_of(c.signature), wait);
  send_all(s, c.bytes, wait);
  // The server's own deadline comes first, as its error names who is missing.
  const net::WaitLimit later(wait.until + std::chrono::seconds(2), wait.goes_on);
  const auto number = [&] {
    std::uint64_t value = 0;
    receive_all(s, bytes_in(value), later);
    return value;
  };
  std::vector<Bytes> all(c.members);
  for (Bytes& one : all) {
    const std::uint64_t size = number();
    if (size == ~std::uint64_t{0}) {
      const auto status = static_cast<Status>(number());
      std::string text(std::min<std::uint64_t>(number(), most_text), ' ');
      receive_all(s, std::as_writable_bytes(std::span(text)), later);
      throw StatusError(status, text);
    }
    if (size > most_bytes) refuse(Status::network_proxy, "a member has {} bytes", size);
    receive_growing(s, one, size, later);
  }
  return all;
}

}  // namespace trellis::device::nrt
