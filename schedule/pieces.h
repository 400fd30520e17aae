// A row of cells in pieces that don't overlap, each with who wrote and who read it last. In order, in blocks of a few
// score, so that one is found and one put in between without going through many, and neighbours lie together.
#pragma once
#include <cstdint>
#include <vector>

namespace trellis::schedule {

struct Piece {
  std::int64_t first = 0, end = 0;
  std::int32_t writer = -1;
  std::int32_t readers = -1;  // where a list of them begins
};

class Pieces {
 public:
  class At {  // a place among them
   public:
    bool operator==(const At&) const = default;

   private:
    friend class Pieces;
    std::size_t block = 0, index = 0;
  };
  At begin() const { return {}; }
  At end() const { return at(blocks_.size(), 0); }
  At next(At) const;
  At previous(At) const;
  Piece& operator[](At a) { return blocks_[a.block][a.index]; }
  const Piece& operator[](At a) const { return blocks_[a.block][a.index]; }

  At from(std::int64_t cell) const;  // the first that begins there or later
  At insert(At before, const Piece&);
  At erase(At from, At to);  // the place of what followed

 private:
  using Block = std::vector<Piece>;
  static At at(std::size_t block, std::size_t index) {
    At a;
    a.block = block, a.index = index;
    return a;
  }
  void shorten(std::size_t block, std::size_t from, std::size_t to);

  std::vector<Block> blocks_;         // none is empty
  std::vector<std::int64_t> firsts_;  // where each begins
};

}  // namespace trellis::schedule
