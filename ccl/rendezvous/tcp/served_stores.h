// The stores that a server keeps, by name. If nobody owns the server, a store is removed when its members have left it,
// or when it was unused for a while. Its users are the connections that have proven that they know its secret, and this
// process.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "ccl/rendezvous/blocking_map.h"
#include "ccl/rendezvous/tcp/greeting.h"

namespace trellis::ccl {

struct ServedStore {
  ServedStore(const StoreName& n, std::string s) : name(n), secret(std::move(s)) {}
  const StoreName name;
  const std::string secret;
  BlockingMap board;
  std::unordered_map<std::string, std::set<std::uint64_t>> waiting;  // connections by key; serving thread only
};

class ServedStores {
 public:
  // Counts as a user of a store while it lives.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept { swap(other); }
    Use& operator=(Use&& other) noexcept {
      swap(other);
      return *this;
    }
    ~Use();
    explicit operator bool() const { return store_ != nullptr; }
    ServedStore& operator*() const { return *store_; }
    ServedStore* operator->() const { return store_.get(); }

   private:
    friend class ServedStores;
    Use(ServedStores* of, std::shared_ptr<ServedStore> store) : of_(of), store_(std::move(store)) {}
    void swap(Use& other) {
      std::swap(of_, other.of_);
      std::swap(store_, other.store_);
    }
    ServedStores* of_ = nullptr;
    std::shared_ptr<ServedStore> store_;
  };

  // `linger`: how long a store is kept after its last user; one that nobody has used yet is kept. Without it, all are
  // kept to the end. `changed` is called when a store's last user has gone, as that may change the time of the next
  // removal.
  ServedStores(std::optional<std::chrono::milliseconds> linger, std::function<void()> changed)
      : linger_(linger), changed_(std::move(changed)) {}

  bool keep(const StoreName&, const std::string& secret);  // false: closed
  std::optional<std::string> secret_of(const StoreName&);
  Use use(const StoreName&);  // empty: not kept here, or no longer

  // Removes the stores whose time has come. Before the removal of the last one can be seen, runs `close` and accepts no
  // more stores. Returns whether that happened.
  bool expire(const std::function<void()>& close);
  Deadline next() const;  // time of the next removal
  void close();

 private:
  struct Entry {
    std::shared_ptr<ServedStore> store;
    int users = 0;
    Deadline goes = Deadline::max();
  };
  void release(const StoreName&);
  void set_end(Entry&, Deadline);
  void let_go();  // removes those whose time has come

  const std::optional<std::chrono::milliseconds> linger_;
  const std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::map<StoreName, Entry> entries_;
  std::set<std::pair<Deadline, StoreName>> ends_;
  bool closed_ = false;
};

}  // namespace trellis::ccl
