// Greeting of two processes over TCP: each proves to the other that it knows the job's secret, without sending it. The
// caller says hello, the listener answers, the caller proves itself. Each proof covers all that both have said, and
// names its side, so that none can be used twice or reflected.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/digest/sha256.h"

namespace trellis::device {

// What the connection is for; a listener takes one kind.
enum class CallKind : std::uint32_t { messages = 1, meeting = 2 };

struct CallHello {
  CallKind kind = CallKind::messages;
  std::int32_t from = 0, to = 0, first_port = 0;  // cores, and the port of the caller's core 0; 0 for a meeting
  std::array<std::byte, 32> nonce = {};
  bool operator==(const CallHello&) const = default;
};

// The hello ends with a code that needs the secret, so that a listener keeps nothing for strangers.
inline constexpr std::size_t call_hello_bytes = 8 + 4 * 4 + 32 + sizeof(kernels::Digest);
inline constexpr std::size_t call_proof_bytes = sizeof(kernels::Digest);
// A verdict; after a welcome, the listener's nonce and its proof.
inline constexpr std::size_t call_answer_bytes = 1 + 32 + sizeof(kernels::Digest);

using CallBytes = std::vector<std::byte>;

// The other end is no process of the job.
struct Stranger : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The listener's side of one connection, without I/O. Read as many bytes as wanted() says and no more: what follows the
// greeting is the caller's.
class Welcome {
 public:
  Welcome(std::string_view secret, CallKind kind, int to) : secret_(kernels::bytes_of(secret)), kind_(kind), to_(to) {}

  std::size_t wanted() const { return proven_ ? 0 : (greeted_ ? call_proof_bytes : call_hello_bytes) - input_.size(); }
  // Bytes that have arrived, not more than wanted(). Returns what to send. Throws Stranger.
  CallBytes take(std::span<const std::byte>);
  bool greeted() const { return greeted_; }  // by one who knows the secret, or repeats what such a one said
  bool proven() const { return proven_; }
  const CallHello& hello() const { return hello_; }  // of a proven caller

 private:
  CallBytes answer();

  const kernels::HmacKey secret_;
  const CallKind kind_;
  const int to_;
  CallBytes input_;
  CallHello hello_;
  kernels::Digest awaited_ = {};
  bool greeted_ = false, proven_ = false;
};

// The caller's side.
class Calling {
 public:
  Calling(std::string_view secret, const CallHello& hello);  // with a fresh nonce
  const CallBytes& hello() const { return said_; }           // to send first
  // To send next, and last. Throws Stranger when the listener does not know the secret.
  kernels::Digest proof(std::span<const std::byte, call_answer_bytes>) const;

 private:
  const kernels::HmacKey secret_;
  CallBytes said_;
};

}  // namespace trellis::device
