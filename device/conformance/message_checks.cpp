// Messages: a device sends to itself, as to any core of any process.
#include <chrono>
#include <system_error>
#include <thread>

#include "device/capabilities.h"
#include "device/channel.h"
#include "device/conformance/device_buffer.h"
#include "device/simulated_time.h"
#include "device/topology.h"

namespace trellis::device {
namespace {

constexpr auto patience = std::chrono::seconds(20);

template <class Ask>
void wait_until(std::string_view what, Ask&& ask) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!ask()) {
    expect(std::chrono::steady_clock::now() < deadline, "{} takes more than {} s", what, patience.count());
    std::this_thread::yield();
  }
}

// Both ends of a channel from a device to itself.
struct Loop {
  explicit Loop(Device& d) {
    ChannelFactory* const channels = d.channels();
    expect(channels != nullptr, "{} says that it sends and receives, and has no channels", d.name());
    const PeerCore self{"127.0.0.1", d.topology().core};
    from = channels->connect(self), to = channels->accept(self);
    wait_until("connecting", [&] { return from->connected() && to->connected(); });
  }
  std::unique_ptr<Channel> from, to;
};

void messages(Device& d) {
  const auto [from, to] = Loop(d);
  DeviceBuffer a(d, 3 << 20), b(d, 3 << 20);
  const auto wanted = numbered(3 << 20, 3);
  a.put(wanted);
  std::vector<unsigned char> host(1000);
  constexpr std::size_t half = 3 << 19;
  // One receive is posted before its send, and two are posted after theirs. The last one receives into host memory, and
  // its message is shorter than that.
  const auto into = to->post(b.data(), half);
  const auto first = from->post(a.data(), half), second = from->post(a.data() + half, half),
             third = from->post(a.data() + 5, 777);
  const auto rest = to->post(b.data() + half, half), into_host = to->post(host.data(), host.size());
  for (MessageHandle* m : {into.get(), first.get(), second.get(), third.get(), rest.get(), into_host.get()})
    wait_until("a message", [&] { return m->done(); });
  expect(b.get<unsigned char>() == wanted, "two messages arrived with other bytes");
  expect(into_host->bytes() == 777 && third->bytes() == 777, "a message of 777 bytes has {} and {}", third->bytes(),
         into_host->bytes());
  expect(std::equal(host.begin(), host.begin() + 777, wanted.begin() + 5), "a message to the host has other bytes");
  expect(into->done() && into->bytes() == half, "a message that was done is not");
  if (d.simulated_time() != nullptr) expect(clock_of(d).time > 0, "six messages took no time");
}

void too_long(Device& d) {
  const auto [from, to] = Loop(d);
  DeviceBuffer a(d, 1000);
  const auto sent = from->post(a.data(), 1000), received = to->post(a.data(), 999);
  expect_refused<std::system_error>("a message longer than its place",
                                    [&] { wait_until("a refusal", [&] { return received->done(); }); });
}

const RegisteredCheck all[] = {
    RegisteredCheck({"messages", "what is sent arrives, in order", {Capability::send_recv}, messages}),
    RegisteredCheck({"long message", "one longer than its place is refused", {Capability::send_recv}, too_long}),
};

}  // namespace
}  // namespace trellis::device
