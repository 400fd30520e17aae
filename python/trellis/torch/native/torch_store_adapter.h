// Rendezvous through the torch Store that a process group was given.
#pragma once

#include <atomic>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "ccl/store.h"

namespace trellis::process_group {

// Waits by asking again and again: a torch store serves one call at a time, so a waiting call would hold up the other
// threads of this process.
class TorchStoreAdapter : public ccl::Store {
 public:
  TorchStoreAdapter(c10::intrusive_ptr<c10d::Store> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {}

  void set(std::string_view key, std::span<const std::byte> value) override;
  ccl::Bytes get(std::string_view key, ccl::Deadline) override;
  std::int64_t add(std::string_view key, std::int64_t amount) override;
  void stop() { stopped_ = true; }  // waiting calls end with Aborted; from any thread

 private:
  std::string named(std::string_view key) const { return prefix_ + std::string(key); }
  c10::intrusive_ptr<c10d::Store> store_;
  std::string prefix_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace trellis::process_group
