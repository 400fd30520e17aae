// The key-value store for rendezvous: ranks that do not know each other yet exchange notes (a key with bytes) through
// it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl {

using Bytes = std::vector<std::byte>;
inline std::string text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

class Store {
 public:
  virtual ~Store() = default;
  virtual void set(std::string_view key, std::span<const std::byte> value) = 0;  // replaces an earlier value
  virtual Bytes get(std::string_view key, Deadline) = 0;                         // waits for the note; throws TimedOut
  virtual std::int64_t add(std::string_view key, std::int64_t amount) = 0;       // a counter from 0; returns the sum
  // One member no longer needs the notes under this prefix ("": all). When the last of `members` leaves, the notes are
  // erased; when no notes are left, the resources that keep them are freed. Does not block or throw. Does nothing in
  // stores whose notes end in another way.
  virtual void leave(std::string_view /*prefix*/, std::int64_t /*members*/) {}
  // A secret that all users of this store have proven to know; it is never sent. Empty: there is no secret, and others
  // cannot reach the notes at all.
  virtual std::string secret() const { return {}; }
};

// The same store with a prefix before every key, so that several communicators can share one. A slash within a prefix
// is escaped, so that leaving "a" does not leave "a/b".
class PrefixStore : public Store {
 public:
  PrefixStore(std::shared_ptr<Store> below, std::string_view prefix) : below_(std::move(below)) {
    for (const char c : prefix) prefix_ += c == '/' ? "%2F" : c == '%' ? "%25" : std::string(1, c);
  }
  void set(std::string_view key, std::span<const std::byte> value) override { below_->set(named(key), value); }
  Bytes get(std::string_view key, Deadline d) override { return below_->get(named(key), d); }
  std::int64_t add(std::string_view key, std::int64_t amount) override { return below_->add(named(key), amount); }
  void leave(std::string_view prefix, std::int64_t members) override { below_->leave(named(prefix), members); }
  std::string secret() const override { return below_->secret(); }

 private:
  std::string named(std::string_view key) const { return prefix_ + "/" + std::string(key); }
  std::shared_ptr<Store> below_;
  std::string prefix_;
};

// Within one process, for ranks that are threads.
std::shared_ptr<Store> memory_store();

// Among processes that see one folder, which is created if it is missing. Notes live as long as one process has the
// store open. Throws system_error when the folder cannot be used, and when it holds notes that an earlier job left
// behind, or those of another job (when both were given names).
std::shared_ptr<Store> file_store(const std::filesystem::path& folder, const std::string& job = "");

// Among hosts. A server (ccl/rendezvous/tcp/server.h) keeps the notes; it may start later than this call. Throws
// system_error (EACCES) when the server has another secret, TimedOut when there is no server. When the server ends, the
// store's calls throw system_error at once. Any number of threads may call them.
std::shared_ptr<Store> tcp_store(const std::string& host, int port, const std::string& secret, Deadline);

}  // namespace trellis::ccl
