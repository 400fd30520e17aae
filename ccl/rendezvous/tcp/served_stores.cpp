#include "ccl/rendezvous/tcp/served_stores.h"

namespace trellis::ccl {

ServedStores::Use::~Use() {
  if (store_) of_->release(store_->name);
}

bool ServedStores::keep(const StoreName& name, const std::string& secret) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  let_go();
  entries_.try_emplace(name, Entry{.store = std::make_shared<ServedStore>(name, secret)});
  return true;
}

std::optional<std::string> ServedStores::secret_of(const StoreName& name) {
  const std::lock_guard lock(mutex_);
  let_go();
  const auto found = entries_.find(name);
  return found == entries_.end() || closed_ ? std::nullopt : std::optional(found->second.store->secret);
}

ServedStores::Use ServedStores::use(const StoreName& name) {
  const std::lock_guard lock(mutex_);
  let_go();
  const auto found = entries_.find(name);
  if (found == entries_.end() || closed_) return {};
  Entry& e = found->second;
  ++e.users;
  set_end(e, Deadline::max());
  return {this, e.store};
}

void ServedStores::release(const StoreName& name) {
  {
    const std::lock_guard lock(mutex_);
    Entry& e = entries_.at(name);
    if (--e.users > 0 || !linger_) return;
    set_end(e, Clock::now() + (e.store->board.served() ? std::chrono::milliseconds(0) : *linger_));
  }
  changed_();
}

void ServedStores::set_end(Entry& e, Deadline at) {
  ends_.erase({e.goes, e.store->name});
  e.goes = at;
  if (at != Deadline::max()) ends_.emplace(at, e.store->name);
}

void ServedStores::let_go() {
  while (!ends_.empty() && ends_.begin()->first <= Clock::now()) {
    entries_.erase(ends_.begin()->second);
    ends_.erase(ends_.begin());
  }
}

bool ServedStores::expire(const std::function<void()>& close) {
  const std::lock_guard lock(mutex_);
  let_go();
  if (!linger_ || !entries_.empty()) return false;
  close();
  return closed_ = true;
}

Deadline ServedStores::next() const {
  const std::lock_guard lock(mutex_);
  return ends_.empty() ? Deadline::max() : ends_.begin()->first;
}

void ServedStores::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

}  // namespace trellis::ccl
