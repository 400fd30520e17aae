// Thrown when the other end of a connection breaks the protocol of TCP stores, or is not admitted.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace trellis::ccl {

// First byte of a server's answer to a hello; only `welcome` is followed by more.
enum class Verdict : std::uint8_t {
  none = 0,          // never sent
  welcome = 1,       // the server's nonce and its proof follow
  other_secret = 2,  // the hello was made with another secret
  elsewhere = 3,     // the hello was for another port: something forwards connections
  gone = 4           // no such store is kept here, or no longer
};

struct Refused : std::runtime_error {
  explicit Refused(const std::string& why, Verdict said = Verdict::none) : std::runtime_error(why), verdict(said) {}
  Verdict verdict;  // to send to the other end
};

}  // namespace trellis::ccl
