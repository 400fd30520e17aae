// Stores that a process serves to others: its own view behaves like those of the others, and a store ends when all have
// left.
#include "ccl/rendezvous/locally_served_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "ccl/rendezvous/tcp/store_client.h"
#include "net/sha256.h"
#include "net/socket.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

// The numbers of descriptors and threads of this process. They may fall during a test, as other tests' servers end.
struct Held {
  std::ptrdiff_t descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  bool at_most(const Held& other) const { return descriptors <= other.descriptors && threads <= other.threads; }
};

bool comes_true(const std::function<bool()>& condition) {
  for (const Deadline end = Clock::now() + 60s; !condition(); std::this_thread::sleep_for(1ms))
    if (Clock::now() > end) return false;
  return true;
}

class OwnStores : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(comes_true([this] { return !anybody_there(); }));
    EXPECT_TRUE(comes_true([this] { return Held().at_most(before); })) << Held().descriptors << " descriptors";
  }
  std::shared_ptr<StoreLoop> serve(std::chrono::milliseconds linger = 0ms) {
    auto loop = serve_while_used({.address = "127.0.0.1", .secret = "s"}, {}, linger);
    port = port_of(*loop);
    return loop;
  }
  std::shared_ptr<Store> from_outside() { return tcp_store("127.0.0.1", port, "s", Clock::now() + 60s); }
  bool anybody_there() const {
    return !!net::connect_before(net::addresses_of("127.0.0.1", port).front(), Clock::now() + 60s);
  }

  const Held before;
  int port = 0;
};

TEST_F(OwnStores, WhoWaitsHearsOfWhatTheOthersSet) {
  const auto own = own_store(serve()), other = from_outside();
  for (int i = 0; i < 50; ++i) {
    const std::string ours = "own " + std::to_string(i), theirs = "other " + std::to_string(i);
    std::thread waits([&] {
      EXPECT_TRUE(other->get(ours, Clock::now() + 60s).empty());
      other->set(theirs, {});
    });
    own->set(ours, {});
    EXPECT_TRUE(own->get(theirs, Clock::now() + 60s).empty());
    waits.join();
  }
  EXPECT_EQ(own->add("n", 1) + other->add("n", 1), 3);
}

TEST_F(OwnStores, TheLastToLeaveLeavesNothingBehind) {
  const auto own = own_store(serve(60s)), other = from_outside(), another = from_outside();
  own->set("note", {});
  for (const auto& store : {own, other, another}) {
    EXPECT_NO_THROW(store->get("note", Clock::now() + 60s));
    store->leave("", 3);
  }
}

TEST_F(OwnStores, GoAWhileAfterTheirLastUserWhoDidNotLeave) {
  Deadline began;
  {
    const auto own = own_store(serve(100ms)), other = from_outside();
    other->set("note", {});
    began = Clock::now();
    own->leave("", 2);
  }
  EXPECT_TRUE(comes_true([this] { return !anybody_there(); }));
  EXPECT_GE(Clock::now() - began, 90ms);
}

TEST_F(OwnStores, StayAsLongAsSomebodyMayCome) {
  serve();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(from_outside()->add("n", 1), 1) << "the first to come";
}

// Several communicators share a job's store: when one leaves, the other's entries stay.
TEST_F(OwnStores, APrefixIsLeftAlone) {
  const auto own = own_store(serve());
  PrefixStore one(own, "1"), ten(own, "10");
  one.set("note", {});
  ten.set("note", {});
  one.leave("", 1);
  EXPECT_THROW(one.get("note", Clock::now()), TimedOut);
  EXPECT_NO_THROW(ten.get("note", Clock::now()));
}

TEST_F(OwnStores, OneServerKeepsManyApart) {
  const auto loop = serve();
  const auto nameless = own_store(loop);
  const Held with_one;
  std::vector<std::shared_ptr<Store>> all;
  for (int i = 0; i < 100; ++i) {
    StoreName name = {};
    name[0] = static_cast<std::byte>(1 + i);
    ASSERT_TRUE(add_store(*loop, name, std::to_string(i)));
    all.push_back(own_store(loop, name));
    EXPECT_EQ(all.back()->add("n", i), i);
  }
  EXPECT_TRUE(Held().at_most(with_one));
  StoreName first = {};
  first[0] = std::byte{1};
  const auto search = [&](const std::string& secret) {
    return find_tcp_store(
        {.places = net::addresses_of("127.0.0.1", port), .secret = secret, .name = "a store", .store = first},
        Clock::now() + 60s);
  };
  EXPECT_EQ(search("0")->add("n", 7), 7);
  EXPECT_THROW(search("1"), std::system_error) << "each has a secret of its own";
}

}  // namespace
}  // namespace trellis::ccl
