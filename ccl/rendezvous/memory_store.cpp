#include "ccl/rendezvous/blocking_map.h"
#include "ccl/store.h"

namespace trellis::ccl {
namespace {

class MemoryStore : public Store {
 public:
  void set(std::string_view key, std::span<const std::byte> value) override { board_.set(key, value); }
  std::int64_t add(std::string_view key, std::int64_t amount) override { return board_.add(key, amount); }
  void leave(std::string_view prefix, std::int64_t members) override { board_.leave(prefix, members); }

  Bytes get(std::string_view key, Deadline deadline) override {
    check_key(key);
    const Deadline asked_at = Clock::now();
    if (std::optional<Bytes> note = board_.find_before(key, deadline)) return *std::move(note);
    throw_no_note(key, asked_at, "this process's store");
  }

 private:
  BlockingMap board_;
};

}  // namespace

std::shared_ptr<Store> memory_store() { return std::make_shared<MemoryStore>(); }

}  // namespace trellis::ccl
