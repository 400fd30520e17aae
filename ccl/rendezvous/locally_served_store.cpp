#include "ccl/rendezvous/locally_served_store.h"

#include "ccl/rendezvous/tcp/loop.h"
#include "device/fork_mark.h"

namespace trellis::ccl {
namespace {

class OwnStore : public Store {
 public:
  OwnStore(std::shared_ptr<StoreLoop> loop, ServedStores::Use store)
      : loop_(std::move(loop)), store_(std::move(store)) {}

  void set(std::string_view key, std::span<const std::byte> value) override {
    mark_.expect_same_process("store");
    store_->board.set(key, value);
    loop_->tell(store_->name, key);
  }

  Bytes get(std::string_view key, Deadline deadline) override {
    check_key(key);
    mark_.expect_same_process("store");
    const Deadline asked_at = Clock::now();
    if (std::optional<Bytes> note = store_->board.find_before(key, deadline)) return *std::move(note);
    throw_no_note(key, asked_at, "the store that this process keeps");
  }

  std::int64_t add(std::string_view key, std::int64_t amount) override {
    mark_.expect_same_process("store");
    const std::int64_t sum = store_->board.add(key, amount);
    loop_->tell(store_->name, key);
    return sum;
  }

  void leave(std::string_view prefix, std::int64_t members) override { store_->board.leave(prefix, members); }
  std::string secret() const override { return store_->secret; }

 private:
  const device::ForkMark mark_;  // a forked process lacks the thread that serves
  const std::shared_ptr<StoreLoop> loop_;
  const ServedStores::Use store_;
};

}  // namespace

std::shared_ptr<StoreLoop> serve_while_used(StoreServerOptions serving, const StoreName& first,
                                            std::chrono::milliseconds linger) {
  const std::string secret = serving.secret;
  auto loop = std::make_shared<StoreLoop>(std::move(serving), linger);
  loop->stores().keep(first, secret);
  serving_thread(loop).detach();
  return loop;
}

int port_of(const StoreLoop& loop) { return loop.port(); }

bool add_store(StoreLoop& loop, const StoreName& name, const std::string& secret) {
  return loop.stores().keep(name, secret);
}

std::shared_ptr<Store> own_store(std::shared_ptr<StoreLoop> loop, const StoreName& name) {
  ServedStores::Use store = loop->stores().use(name);
  return store ? std::make_shared<OwnStore>(std::move(loop), std::move(store)) : nullptr;
}

}  // namespace trellis::ccl
