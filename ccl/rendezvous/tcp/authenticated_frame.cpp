#include "ccl/rendezvous/tcp/authenticated_frame.h"

#include "net/wire_bytes.h"

namespace trellis::ccl {

using net::ProtocolError;
using net::put;

std::size_t body_bytes(std::span<const std::byte, length_bytes> length) {
  const auto bytes = net::WireReader(length).number<std::uint32_t>("length");
  if (bytes == 0 || bytes > most_body_bytes)
    throw ProtocolError(fmt::format("a frame of {} bytes, where 1 to {} may be", bytes, most_body_bytes));
  return bytes;
}

net::Digest FrameChain::next_code(std::span<const std::byte> body) {
  Bytes before;
  put(before, frames_++);
  put(before, static_cast<std::uint32_t>(body.size()));
  return key_.of({before, body});
}

Bytes FrameChain::frame(std::span<const std::byte> body) {
  Bytes frame;
  frame.reserve(length_bytes + body.size() + code_bytes);
  put(frame, static_cast<std::uint32_t>(body.size()));
  put(frame, body);
  put(frame, next_code(body));
  return frame;
}

void FrameChain::check(std::span<const std::byte> body, std::span<const std::byte> code) {
  if (!net::equal_in_constant_time(code, next_code(body)))
    throw ProtocolError("a frame that the other end did not send, or not now: something on the way changed it");
}

}  // namespace trellis::ccl
