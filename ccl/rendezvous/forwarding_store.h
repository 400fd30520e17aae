// A store that passes everything on to another one. A subclass that waits differently overrides get().
#pragma once

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

}  // namespace trellis::ccl
