// all_to_all_v: blocks of rows go straight to where the other side wants them, as messages of one group.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "ccl/group.h"
#include "train/step/run.h"

namespace trellis::train {
namespace {

// Where each block of a side lies: its first row and its rows, by rank and then by block.
struct Layout {
  std::vector<std::size_t> first, rows;
};

Layout layout_of(const Runner& at, const UnevenBlocks& side, std::size_t ranks, std::size_t blocks,
                 const std::string& operation, std::size_t most) {
  Layout all{std::vector<std::size_t>(ranks * blocks), std::vector<std::size_t>(ranks * blocks)};
  const auto* const counts = at.as<std::int32_t>(side.rows);
  std::size_t next = 0;
  for (std::size_t i = 0; i < ranks * blocks; ++i) {
    const std::size_t at_block = side.by_block ? i % ranks * blocks + i / ranks : i;
    all.first[at_block] = next;
    all.rows[at_block] = static_cast<std::size_t>(std::max(0, counts[at_block]));
    next += all.rows[at_block];
  }
  if (next > most) throw std::runtime_error(fmt::format("{}: {} rows, expected at most {}", operation, next, most));
  return all;
}

}  // namespace

void Runner::exchange_uneven(const Operation& o) {
  const Exchange& e = o.exchange;
  const Transfer& t = e.transfers.at(0);
  ccl::Communicator& c = *communicators_.at(e.axis);
  const auto ranks = static_cast<std::size_t>(c.ranks()), own = static_cast<std::size_t>(c.rank());
  const Tensor &from = program_.tensor(t.from.tensor), &to = program_.tensor(t.to.tensor);
  const Layout out = layout_of(*this, e.sent, ranks, e.blocks, o.name, from.rows);
  const Layout in = layout_of(*this, e.received, ranks, e.blocks, o.name, to.rows);
  const std::size_t width = from.columns * kernels::size_of(from.type);
  auto* const source = as<std::byte>(t.from.tensor);
  auto* const target = as<std::byte>(t.to.tensor);
  ccl::Group group;
  for (std::size_t i = 0; i < ranks * e.blocks; ++i) {
    const auto peer = static_cast<Rank>(i / e.blocks);
    if (i / e.blocks == own) {
      std::memcpy(target + in.first[i] * width, source + out.first[i] * width, out.rows[i] * width);
      continue;
    }
    if (out.rows[i] > 0) c.send(source + out.first[i] * width, out.rows[i] * from.columns, t.type, peer);
    if (in.rows[i] > 0) c.recv(target + in.first[i] * width, in.rows[i] * from.columns, t.type, peer);
  }
  group.end();
}

}  // namespace trellis::train
