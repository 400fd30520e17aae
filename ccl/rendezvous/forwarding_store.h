// A store that passes everything on to another one. A subclass that waits differently overrides get().
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "ccl/store.h"

namespace trellis::ccl {

class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(std::shared_ptr<Store> below) : below_(std::move(below)) {}
  void set(std::string_view key, std::span<const std::byte> value) override { below_->set(key, value); }
  Bytes get(std::string_view key, Deadline deadline) override { return below_->get(key, deadline); }
  std::int64_t add(std::string_view key, std::int64_t amount) override { return below_->add(key, amount); }
  void leave(std::string_view prefix, std::int64_t members) override { below_->leave(prefix, members); }
  std::string secret() const override { return below_->secret(); }

 protected:
  const std::shared_ptr<Store> below_;
};

// A store whose get() waits for the note in short intervals. Between them, and with `at_once` before the first one too,
// it calls `ask`, which may throw.
class PollingStore : public ForwardingStore {
 public:
  static constexpr std::chrono::milliseconds interval{100};

  PollingStore(std::shared_ptr<Store> below, bool at_once, std::function<void()> ask)
      : ForwardingStore(std::move(below)), at_once_(at_once), ask_(std::move(ask)) {}
  Bytes get(std::string_view key, Deadline deadline) override {
    if (at_once_) ask_();
    for (;;) {
      const Deadline soon = Clock::now() + interval;
      if (soon >= deadline) return below_->get(key, deadline);
      try {
        return below_->get(key, soon);
      } catch (const TimedOut&) {
        ask_();
      }
    }
  }

 private:
  const bool at_once_;
  const std::function<void()> ask_;
};

}  // namespace trellis::ccl
