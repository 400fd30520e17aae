// Thrown when the other end of a connection breaks the protocol, or may not take part in it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace trellis::net {

// First byte of a listener's answer to a hello. Only `welcome` is followed by more.
enum class Verdict : std::uint8_t {
  none = 0,          // never sent
  welcome = 1,       // the listener's nonce and its proof follow
  other_secret = 2,  // the hello was made with another secret
  elsewhere = 3,     // the hello was for another listener: something forwards connections
  gone = 4           // what the hello asks for is not here, or no longer
};

struct ProtocolError : std::runtime_error {
  explicit ProtocolError(const std::string& why, Verdict said = Verdict::none)
      : std::runtime_error(why), verdict(said) {}
  Verdict verdict;  // thrown at a listener: what it answers; thrown at a caller: what the listener has answered
};

}  // namespace trellis::net
