// Where ranks that do not know each other yet leave notes: keys with bytes, seen by all.
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
  virtual void set(std::string_view key, std::span<const std::byte> value) = 0;  // a later value replaces it
  virtual Bytes get(std::string_view key, Deadline) = 0;                         // waits for it; throws TimedOut
  virtual std::int64_t add(std::string_view key, std::int64_t amount) = 0;       // to a counter from 0; returns the sum
};

// The same store with every key behind a prefix, so that several communicators can share one.
class PrefixStore : public Store {
 public:
  PrefixStore(std::shared_ptr<Store> below, std::string prefix)
      : below_(std::move(below)), prefix_(std::move(prefix)) {}
  void set(std::string_view key, std::span<const std::byte> value) override { below_->set(named(key), value); }
  Bytes get(std::string_view key, Deadline d) override { return below_->get(named(key), d); }
  std::int64_t add(std::string_view key, std::int64_t amount) override { return below_->add(named(key), amount); }

 private:
  std::string named(std::string_view key) const { return prefix_ + "/" + std::string(key); }
  std::shared_ptr<Store> below_;
  std::string prefix_;
};

// Within one process: ranks that are threads.
std::shared_ptr<Store> memory_store();

// Among processes that see one folder, which is made when it is not there. Its notes live as long as one process has it
// open. Throws system_error when it cannot be used, and when it holds notes that a job left behind, or another job's
// (when both were given names).
std::shared_ptr<Store> file_store(const std::filesystem::path& folder, const std::string& job = "");

// Among hosts: kept by a server (ccl/rendezvous/tcp_store_server.h), which may start later than this is called. Throws
// system_error (EACCES) when the server has another secret, TimedOut when there is none. The store's calls throw
// system_error at once when the server ends. Any number of threads may call them.
std::shared_ptr<Store> tcp_store(const std::string& host, int port, const std::string& secret, Deadline);

}  // namespace trellis::ccl
