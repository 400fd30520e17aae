// A rank that waits for a message over libfabric sleeps until there is one.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <vector>

#include "ccl/transports/libfabric/wire/endpoint_wire.h"
#include "ccl/transports/libfabric/wire/provider.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<Wire> wire_of(const char* provider) {
  try {
    if (!library_absence().empty()) return nullptr;
    return open_endpoint(chosen({.provider = provider}));
  } catch (const std::invalid_argument&) {
    return nullptr;
  }
}

// Polls, and counts the events of operations of this kind; others are dropped.
int events_of(Wire& wire, WireOperation::What what) {
  std::array<WireEvent, 16> events;
  const std::size_t count = wire.poll(events);
  return static_cast<int>(std::ranges::count_if(std::span(events).first(count), [&](const WireEvent& e) {
    return e.operation != nullptr && e.operation->what == what && e.what == WireEvent::What::done;
  }));
}

bool would_sleep(Wire& wire) {
  pollfd one = {.fd = wire.descriptor(), .events = POLLIN, .revents = 0};
  return one.fd == Wire::none || (one.fd >= 0 && poll(&one, 1, 0) == 0);
}

// Two wires of a provider; null: this libfabric does not have it.
class WireDescriptor : public testing::TestWithParam<const char*> {
 protected:
  // Sends a message. If `is_taken`, polls the receiver until it has the message, else does not poll it.
  void send(bool is_taken) {
    ASSERT_TRUE(there_->receive({got_.data(), got_.size()}, in_));
    bool posted = false;
    int gone = 0, arrived = 0;
    while (gone == 0 || (is_taken && arrived == 0)) {
      ASSERT_LT(Clock::now(), deadline_);
      posted = posted || here_->send(to_, {sent_.data(), sent_.size()}, out_);
      gone += events_of(*here_, WireOperation::What::packet_out);
      if (is_taken) arrived += events_of(*there_, WireOperation::What::packet_in);
    }
  }
  void take() {
    while (events_of(*there_, WireOperation::What::packet_in) == 0) ASSERT_LT(Clock::now(), deadline_);
  }
  static bool comes_to_sleep(Wire& wire) {
    for (int look = 0; look < 100; ++look) {
      events_of(wire, WireOperation::What::packet_in);
      if (would_sleep(wire)) return true;
    }
    return false;
  }

  const std::unique_ptr<Wire> here_ = wire_of(GetParam()), there_ = wire_of(GetParam());
  const fi_addr_t to_ = here_ ? here_->know(there_->address(), 1) : FI_ADDR_UNSPEC;
  const Deadline deadline_ = Clock::now() + 60s;
  std::vector<std::byte> sent_ = std::vector<std::byte>(64), got_ = sent_;
  WireOperation in_{.what = WireOperation::What::packet_in}, out_{.what = WireOperation::What::packet_out};
};

// Some providers over sockets left the descriptor readable for ever after the first event.
TEST_P(WireDescriptor, IsReadableOnlyWhileThereIsSomethingToDo) {
  if (!here_) GTEST_SKIP() << "this libfabric has no provider " << GetParam();
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_NO_FATAL_FAILURE(send(true)) << "message " << turn;
    EXPECT_TRUE(comes_to_sleep(*here_)) << "the sender of message " << turn;
    EXPECT_TRUE(comes_to_sleep(*there_)) << "the receiver of message " << turn;
  }
}

TEST_P(WireDescriptor, BecomesReadableWithAMessage) {
  if (!here_) GTEST_SKIP() << "this libfabric has no provider " << GetParam();
  ASSERT_NO_FATAL_FAILURE(send(true)) << "the first one, with the connection";
  for (int turn = 0; turn < 3; ++turn) {
    if (!comes_to_sleep(*there_)) break;  // a provider need not let its receiver sleep
    ASSERT_NO_FATAL_FAILURE(send(false)) << "message " << turn;
    while (would_sleep(*there_) && there_->descriptor() != Wire::none)
      ASSERT_LT(Clock::now(), deadline_) << "message " << turn << " has not woken its receiver";
    ASSERT_NO_FATAL_FAILURE(take());
  }
}

INSTANTIATE_TEST_SUITE_P(Fabric, WireDescriptor, testing::Values("net", "tcp", "tcp;ofi_rxm", "shm"));

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
