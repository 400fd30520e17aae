// What every kind of store does.
#include "ccl/store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "ccl/rendezvous/bounded_map.h"
#include "ccl/rendezvous/tcp/server.h"
#include "net/sha256.h"
#include "tests/folder.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

Deadline in(Clock::duration d) { return Clock::now() + d; }
std::string text(const Bytes& b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

// A store of one kind. join() returns a rank's view of it.
struct Place {
  virtual ~Place() = default;
  virtual std::shared_ptr<Store> join() = 0;
};

struct MemoryPlace : Place {
  std::shared_ptr<Store> store = memory_store();
  std::shared_ptr<Store> join() override { return store; }
};

struct FilePlace : Place {
  const Folder folder;
  std::shared_ptr<Store> join() override { return file_store(folder.path()); }
};

struct TcpPlace : Place {
  std::unique_ptr<TcpStoreServer> server = tcp_store_server({.secret = "s"});
  std::shared_ptr<Store> join() override { return tcp_store("127.0.0.1", server->port(), "s", in(60s)); }
};

struct Kind {
  std::string name;
  std::function<std::unique_ptr<Place>()> make;
};

class EveryStore : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Place> place = GetParam().make();
  std::shared_ptr<Store> one = place->join(), other = place->join();
};

TEST_P(EveryStore, OneSetsAndAnotherGets) {
  one->set("key", net::bytes_of("value"));
  EXPECT_EQ(text(other->get("key", in(60s))), "value");
  one->set("key", net::bytes_of("a later one"));
  EXPECT_EQ(text(other->get("key", in(60s))), "a later one");
  other->set("nothing", {});
  EXPECT_TRUE(one->get("nothing", in(60s)).empty());
}

TEST_P(EveryStore, GetWaitsForTheNote) {
  const Deadline began = Clock::now();
  std::thread late([&] {
    std::this_thread::sleep_for(50ms);
    one->set("late", net::bytes_of("here"));
  });
  EXPECT_EQ(text(other->get("late", in(60s))), "here");
  EXPECT_GE(Clock::now() - began, 40ms);
  late.join();
}

TEST_P(EveryStore, GetEndsAtItsDeadline) {
  const Deadline began = Clock::now();
  try {
    one->get("never", in(60ms));
    FAIL() << "got a note that nobody set";
  } catch (const TimedOut& error) {
    EXPECT_NE(std::string(error.what()).find("'never'"), std::string::npos) << error.what();
  }
  EXPECT_GE(Clock::now() - began, 60ms);
  EXPECT_LT(Clock::now() - began, 30s);
  EXPECT_THROW(one->get("never", Clock::now() - 1s), TimedOut);
  one->set("there", net::bytes_of("x"));
  EXPECT_EQ(text(one->get("there", Clock::now() - 1s)), "x") << "what is there needs no time";
}

TEST_P(EveryStore, CountsFromZero) {
  EXPECT_EQ(one->add("n", 3), 3);
  EXPECT_EQ(other->add("n", -5), -2);
  EXPECT_EQ(one->add("n", 0), -2);
  EXPECT_EQ(other->get("n", in(60s)), counter_of(-2));
  one->set("text", net::bytes_of("seven"));
  EXPECT_THROW(other->add("text", 1), std::invalid_argument);
  one->add("large", INT64_MAX);
  EXPECT_THROW(one->add("large", 1), std::invalid_argument);
  EXPECT_EQ(one->add("large", 0), INT64_MAX);
}

TEST_P(EveryStore, ManyAddAtOnce) {
  constexpr int threads = 4, times = 50;
  std::atomic<std::int64_t> sum = 0;
  std::vector<std::thread> adding;
  for (int t = 0; t < threads; ++t)
    adding.emplace_back([&] {
      const std::shared_ptr<Store> mine = place->join();
      for (int i = 0; i < times; ++i) sum += mine->add("together", 1);
    });
  for (std::thread& t : adding) t.join();
  constexpr std::int64_t n = threads * times;
  EXPECT_EQ(one->add("together", 0), n);
  EXPECT_EQ(sum, n * (n + 1) / 2) << "each sum was handed out once";
}

TEST_P(EveryStore, OneThatWaitsStopsNoOther) {
  std::thread waits([&] { EXPECT_EQ(text(one->get("later", in(60s))), "v"); });
  for (int i = 0; i < 20; ++i) one->add("meanwhile", 1);
  one->set("later", net::bytes_of("v"));
  waits.join();
}

TEST_P(EveryStore, KeysAreAnyBytes) {
  std::vector<std::string> keys = {"a/b/c",
                                   "../up",
                                   ".",
                                   "..",
                                   " ",
                                   "%2F",
                                   std::string("\0\n\xff", 3),
                                   "ä",
                                   "job",
                                   std::string(most_key_bytes, 'k'),
                                   std::string(most_key_bytes - 1, 'k') + "l"};
  for (std::size_t i = 0; i < keys.size(); ++i) one->set(keys[i], net::bytes_of(std::to_string(i)));
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(text(other->get(keys[i], in(60s))), std::to_string(i));
}

TEST_P(EveryStore, LimitsHold) {
  const Bytes largest(most_value_bytes, std::byte{7}), too_large(most_value_bytes + 1);
  one->set("large", largest);
  EXPECT_EQ(other->get("large", in(60s)), largest);
  EXPECT_THROW(one->set("larger", too_large), std::invalid_argument);
  EXPECT_THROW(one->set("", largest), std::invalid_argument);
  EXPECT_THROW(one->set(std::string(most_key_bytes + 1, 'k'), {}), std::invalid_argument);
  EXPECT_THROW(one->get("", in(1s)), std::invalid_argument);
  EXPECT_THROW(one->add("", 1), std::invalid_argument);
  EXPECT_EQ(one->add("still well", 1), 1);
}

TEST_P(EveryStore, PrefixesKeepKeysApart) {
  PrefixStore a(one, "a"), b(other, "b");
  a.set("key", net::bytes_of("of a"));
  b.set("key", net::bytes_of("of b"));
  EXPECT_EQ(text(a.get("key", in(60s))), "of a");
  EXPECT_EQ(text(other->get("b/key", in(60s))), "of b");
  EXPECT_EQ(a.add("n", 1) + b.add("n", 1), 2);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryStore,
                         testing::Values(Kind{"memory", [] { return std::make_unique<MemoryPlace>(); }},
                                         Kind{"file", [] { return std::make_unique<FilePlace>(); }},
                                         Kind{"tcp", [] { return std::make_unique<TcpPlace>(); }}),
                         [](const auto& each) { return each.param.name; });

// A store that records the keys that it is asked for.
struct Listening : Store {
  std::vector<std::string> keys;
  void set(std::string_view key, std::span<const std::byte>) override { keys.emplace_back(key); }
  Bytes get(std::string_view, Deadline) override { return {}; }
  std::int64_t add(std::string_view, std::int64_t) override { return 0; }
  void leave(std::string_view prefix, std::int64_t) override { keys.emplace_back(prefix); }
};

TEST(PrefixStore, IsNotLeftWithAnotherWhosePrefixItBeginsWith) {
  const auto below = std::make_shared<Listening>();
  PrefixStore(below, "ring").leave("", 2);
  PrefixStore(below, "ring/2").set("note", {});
  PrefixStore(below, "ring%2F2").set("note", {});
  ASSERT_EQ(below->keys.size(), 3u);
  EXPECT_FALSE(below->keys[1].starts_with(below->keys[0]));
  EXPECT_NE(below->keys[1], below->keys[2]);
}

}  // namespace
}  // namespace trellis::ccl
