#include "ccl/transports/libfabric/presence/public_state.h"

#include <algorithm>
#include <cstring>

namespace trellis::ccl::libfabric {

std::size_t public_bytes(const PublicState& s) {
  return sizeof(PublicHead) + s.address.size() + s.note.size() + s.board.size();
}

void write_public(const PublicState& s, std::span<std::byte> to) {
  PublicHead head = s.head;
  head.address_bytes = static_cast<std::uint16_t>(s.address.size());
  head.note_bytes = static_cast<std::uint16_t>(s.note.size());
  head.board_bytes = static_cast<std::uint16_t>(s.board.size());
  std::memcpy(to.data(), &head, sizeof head);
  auto at = to.begin() + static_cast<std::ptrdiff_t>(sizeof head);
  for (const auto* part : {&s.address, &s.note, &s.board}) at = std::ranges::copy(*part, at).out;
}

bool read_public(std::span<const std::byte> from, PublicState& s) {
  if (from.size() < sizeof(PublicHead)) return false;
  std::memcpy(&s.head, from.data(), sizeof(PublicHead));
  const std::size_t address = s.head.address_bytes, note = s.head.note_bytes, board = s.head.board_bytes;
  if (address + note + board > from.size() - sizeof(PublicHead)) return false;
  auto rest = from.subspan(sizeof(PublicHead));
  const auto part = [&rest](std::vector<std::byte>& to, std::size_t bytes) {
    to.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(bytes));
    rest = rest.subspan(bytes);
  };
  part(s.address, address);
  part(s.note, note);
  part(s.board, board);
  return true;
}

}  // namespace trellis::ccl::libfabric
