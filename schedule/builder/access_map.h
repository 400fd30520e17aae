// A sorted list of disjoint runs of cells, each with its last writer and readers. Stored in blocks of at most 128
// pieces, so that search and insertion touch little memory and neighbours are close.
#pragma once
#include <cstdint>
#include <vector>

namespace trellis::schedule {

struct AccessRecord {
  std::int64_t first = 0, end = 0;
  std::int32_t writer = -1;
  std::int32_t readers = -1;  // head of its list in HazardTracker
};

class AccessMap {
 public:
  class At {  // a position in the list
   public:
    bool operator==(const At&) const = default;

   private:
    friend class AccessMap;
    std::size_t block = 0, index = 0;
  };
  At begin() const { return {}; }
  At end() const { return at(blocks_.size(), 0); }
  At next(At) const;
  At previous(At) const;
  AccessRecord& operator[](At a) { return blocks_[a.block][a.index]; }
  const AccessRecord& operator[](At a) const { return blocks_[a.block][a.index]; }

  At from(std::int64_t cell) const;  // the first piece that begins at `cell` or later
  At insert(At before, const AccessRecord&);
  At erase(At from, At to);  // returns the position after the erased pieces

 private:
  using Block = std::vector<AccessRecord>;
  static At at(std::size_t block, std::size_t index) {
    At a;
    a.block = block, a.index = index;
    return a;
  }
  void shorten(std::size_t block, std::size_t from, std::size_t to);

  std::vector<Block> blocks_;         // none is empty
  std::vector<std::int64_t> firsts_;  // the first cell of each block
};

}  // namespace trellis::schedule
