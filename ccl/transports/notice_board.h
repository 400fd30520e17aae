// NoticeBoard: the part of a transport through which ranks of a failed communicator still reach each other. Every rank
// has a board that it alone writes and all read. A board shows the rank's last complete post, so a rank that stops
// while it posts blocks nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl {

class NoticeBoard {
 public:
  virtual ~NoticeBoard() = default;
  virtual void post(std::span<const std::byte>) = 0;      // at most most_notice_bytes()
  virtual std::vector<std::byte> posted(Rank) const = 0;  // empty: nothing posted yet
  virtual std::uint32_t posts(Rank) const = 0;            // number of posts so far
  // Waits for a short time, which grows with `idle`, until the number of all ranks' posts is more than `than`.
  virtual void wait_for_posts(std::uint64_t than, std::uint32_t idle) = 0;
};

}  // namespace trellis::ccl
