#include "device/memory_accounting.h"

#include <fmt/format.h>

#include <algorithm>

namespace trellis::device {
namespace {

constexpr std::size_t named = 5;  // holders that an error lists

std::string holders_text(const MemoryUse& use) {
  std::string out;
  std::size_t rest = 0;
  for (std::size_t i = 0; i < use.holders.size(); ++i) {
    const MemoryHolder& h = use.holders[i];
    if (i >= named) {
      rest += h.bytes;
      continue;
    }
    out += fmt::format("{}{} holds {} bytes in {} piece{}", i == 0 ? "" : ", ", h.what, h.bytes, h.pieces,
                       h.pieces == 1 ? "" : "s");
  }
  if (rest != 0) out += fmt::format(", {} others hold {} bytes", use.holders.size() - named, rest);
  return out.empty() ? "nobody holds any" : out;
}

}  // namespace

OutOfMemory::OutOfMemory(std::string_view device, std::string_view what, std::size_t bytes, const MemoryUse& use)
    : text_(fmt::format("{}: out of memory: {} bytes for {}", device, bytes, what)) {
  if (use.limit != 0)
    text_ += fmt::format("; {} of {} bytes are free", use.limit - std::min(use.limit, use.used), use.limit);
  text_ += "; " + holders_text(use);
}

void MemoryAccount::reserve(std::size_t bytes, std::string_view what) {
  const std::lock_guard lock(mutex_);
  if (limit_ != 0 && bytes > limit_ - std::min(used_, limit_)) throw OutOfMemory(device_, what, bytes, use_locked());
  used_ += bytes;
}

void MemoryAccount::cancel(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  used_ -= bytes;
}

void MemoryAccount::hold(const void* at, std::size_t bytes, std::string_view what) {
  const std::lock_guard lock(mutex_);
  pieces_.insert_or_assign(static_cast<const std::byte*>(at), MemoryPiece{bytes, std::string(what)});
}

std::optional<std::size_t> MemoryAccount::release(const void* at) {
  const std::lock_guard lock(mutex_);
  const auto found = pieces_.find(static_cast<const std::byte*>(at));
  if (found == pieces_.end()) return std::nullopt;
  const std::size_t bytes = found->second.bytes;
  pieces_.erase(found);
  used_ -= bytes;
  return bytes;
}

MemoryUse MemoryAccount::use() const {
  const std::lock_guard lock(mutex_);
  return use_locked();
}

MemoryUse MemoryAccount::use_locked() const {
  MemoryUse use{.used = used_, .limit = limit_};
  std::map<std::string_view, MemoryHolder> by_name;
  for (const auto& [at, piece] : pieces_) {
    MemoryHolder& h = by_name[piece.what];
    h.what = piece.what;
    h.bytes += piece.bytes;
    ++h.pieces;
  }
  for (auto& [what, holder] : by_name) use.holders.push_back(std::move(holder));
  std::ranges::stable_sort(use.holders, std::ranges::greater{}, &MemoryHolder::bytes);
  return use;
}

}  // namespace trellis::device
