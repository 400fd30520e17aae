#include "ccl/rendezvous/tcp/store_server_codec.h"

namespace trellis::ccl {

std::optional<StoreRequest> StoreServerCodec::request() {
  const std::span<const std::byte> input(input_);
  if (input.size() < length_bytes) return std::nullopt;
  const std::size_t bytes = body_bytes(input.first<length_bytes>()), whole = length_bytes + bytes + code_bytes;
  if (input.size() < whole) return std::nullopt;
  const auto body = input.subspan(length_bytes, bytes);
  heard_.check(body, input.subspan(length_bytes + bytes, code_bytes));
  StoreRequest r = request_in(body);
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(whole));
  if (input_.empty() && input_.capacity() > 4096) input_.shrink_to_fit();  // there may be many idle connections
  return r;
}

}  // namespace trellis::ccl
