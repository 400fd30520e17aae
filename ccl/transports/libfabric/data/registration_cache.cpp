#include "ccl/transports/libfabric/data/registration_cache.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace trellis::ccl::libfabric {
namespace {

using Range = RegistrationCache::Range;

bool contains(const Range& r, const std::byte* begin, std::size_t bytes) {
  return begin >= r.begin && begin + bytes <= r.begin + r.bytes;
}

std::byte* writable(const void* data) { return static_cast<std::byte*>(const_cast<void*>(data)); }

}  // namespace

RegistrationCache::Use RegistrationCache::made(const Range& r, bool for_peers) {
  auto one = std::make_shared<RegisteredMemory>(make_(r, for_peers));
  if (all_.size() == all_.capacity()) std::erase_if(all_, [](const auto& w) { return w.expired(); });
  all_.push_back(one);
  return one;
}

RegistrationCache::Use RegistrationCache::alone(const void* data, std::size_t bytes, bool for_peers) {
  const auto known = device::watched_memory().find(data, bytes);
  return made({writable(data), bytes, known ? known->exporter : nullptr}, for_peers);
}

RegistrationCache::Use RegistrationCache::of(const void* data, std::size_t bytes, bool for_peers) {
  std::byte* const begin = writable(data);
  const auto found = std::ranges::find_if(
      kept_, [&](const Kept& k) { return k.for_peers == for_peers && contains(k.range, begin, bytes); });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return found->registered ? found->registered : alone(data, bytes, for_peers);
  }
  auto range = device::watched_memory().find(data, bytes);
  if (!range) {
    const auto by_caller = std::ranges::find_if(exposed_, [&](const Range& r) { return contains(r, begin, bytes); });
    if (by_caller != exposed_.end()) range = *by_caller;
  }
  if (!range || !make_room()) return alone(data, bytes, for_peers);
  Use whole;
  try {
    whole = made(*range, for_peers);
  } catch (const std::system_error&) {  // too much for the provider or a limit: each message's part is tried alone
  }
  kept_.push_front({*range, for_peers, whole});
  return whole ? whole : alone(data, bytes, for_peers);
}

// Ends the registration that was used least recently. False: as many as may be kept are in use.
bool RegistrationCache::make_room() {
  if (kept_.size() < most_) return true;
  const auto unused =
      std::find_if(kept_.rbegin(), kept_.rend(), [](const Kept& k) { return k.registered.use_count() <= 1; });
  if (unused == kept_.rend()) return false;
  kept_.erase(std::next(unused).base());
  return true;
}

void RegistrationCache::end_exposed(const Range& r) {
  end(r.begin, r.bytes);
  const auto one =
      std::ranges::find_if(exposed_, [&](const Range& e) { return e.begin == r.begin && e.bytes == r.bytes; });
  if (one != exposed_.end()) exposed_.erase(one);
}

void RegistrationCache::end(const std::byte* begin, std::size_t bytes) {
  std::erase_if(kept_,
                [&](const Kept& k) { return k.range.begin < begin + bytes && begin < k.range.begin + k.range.bytes; });
}

void RegistrationCache::add_rail(const std::function<std::unique_ptr<MemoryRegion>(const Range&, bool)>& on_it) {
  std::vector<std::pair<Use, std::unique_ptr<MemoryRegion>>> made;
  for (const auto& w : all_)
    if (const Use u = w.lock()) made.emplace_back(u, on_it(u->of(), u->for_peers()));
  for (auto& [use, region] : made) use->add_rail(std::move(region));
}

void RegistrationCache::drop_rail(int rail) {
  for (const Kept& k : kept_)
    if (k.registered) k.registered->drop_rail(rail);
}

}  // namespace trellis::ccl::libfabric
