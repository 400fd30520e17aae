#include "schedule/builder/access_map.h"

#include <algorithm>

namespace trellis::schedule {
namespace {

constexpr std::size_t most = 128;  // pieces per block

}  // namespace

AccessMap::At AccessMap::next(At a) const {
  return a.index + 1 < blocks_[a.block].size() ? at(a.block, a.index + 1) : at(a.block + 1, 0);
}

AccessMap::At AccessMap::previous(At a) const {
  return a.index > 0 ? at(a.block, a.index - 1) : at(a.block - 1, blocks_[a.block - 1].size() - 1);
}

AccessMap::At AccessMap::from(std::int64_t cell) const {
  const auto after = std::ranges::upper_bound(firsts_, cell);
  if (after == firsts_.begin()) return begin();
  const auto block = static_cast<std::size_t>(after - firsts_.begin()) - 1;
  const Block& pieces = blocks_[block];
  const auto found = std::ranges::lower_bound(pieces, cell, {}, &AccessRecord::first);
  return found == pieces.end() ? at(block + 1, 0) : at(block, static_cast<std::size_t>(found - pieces.begin()));
}

// A full block is split in two. When pieces are added in order, a new block is started instead.
AccessMap::At AccessMap::insert(At before, const AccessRecord& piece) {
  if (blocks_.empty()) blocks_.emplace_back(), firsts_.push_back(piece.first);
  const bool last = before.block == blocks_.size();
  if (before.index == 0 && before.block > 0 && (last || blocks_[before.block - 1].size() < most))
    before = at(before.block - 1, blocks_[before.block - 1].size());
  if (blocks_[before.block].size() == most) {
    const std::size_t kept = before.index == most ? most : most / 2;
    Block& full = blocks_[before.block];
    Block rest(full.begin() + static_cast<std::ptrdiff_t>(kept), full.end());
    full.resize(kept);
    const auto place = static_cast<std::ptrdiff_t>(before.block) + 1;
    firsts_.insert(firsts_.begin() + place, rest.empty() ? piece.first : rest.front().first);
    blocks_.insert(blocks_.begin() + place, std::move(rest));
    if (before.index > kept || kept == most) before = at(before.block + 1, before.index - kept);
  }
  Block& block = blocks_[before.block];
  block.insert(block.begin() + static_cast<std::ptrdiff_t>(before.index), piece);
  if (before.index == 0) firsts_[before.block] = piece.first;
  return before;
}

void AccessMap::shorten(std::size_t block, std::size_t from, std::size_t to) {
  Block& pieces = blocks_[block];
  pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(from), pieces.begin() + static_cast<std::ptrdiff_t>(to));
  if (!pieces.empty()) firsts_[block] = pieces.front().first;
}

AccessMap::At AccessMap::erase(At from, At to) {
  if (from == to) return from;
  if (to.block > from.block) {
    if (to.index > 0) shorten(to.block, 0, to.index);
    const auto first = static_cast<std::ptrdiff_t>(from.block) + 1, end = static_cast<std::ptrdiff_t>(to.block);
    blocks_.erase(blocks_.begin() + first, blocks_.begin() + end);
    firsts_.erase(firsts_.begin() + first, firsts_.begin() + end);
    to = at(from.block, blocks_[from.block].size());
  }
  shorten(from.block, from.index, to.index);
  if (blocks_[from.block].empty()) {
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(from.block));
    firsts_.erase(firsts_.begin() + static_cast<std::ptrdiff_t>(from.block));
    return at(from.block, 0);
  }
  return from.index == blocks_[from.block].size() ? at(from.block + 1, 0) : from;
}

}  // namespace trellis::schedule
