// Greeting of two processes over a connection: each proves to the other that it knows a secret, without sending it. The
// caller says hello, the listener answers, the caller proves itself. Each proof, and the keys for what follows, cover
// all that both have said and name their side, so none can be used twice or reflected.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/sha256.h"
#include "net/socket.h"
#include "net/wire_bytes.h"

namespace trellis::net {

using Nonce = std::array<std::byte, 32>;

// What distinguishes the greeting of one protocol from another's.
struct Greeting {
  std::string_view magic;  // begins the hello; its last character is the protocol's version
  std::string_view label;  // part of each MAC's input, so that a MAC of one protocol can't be used in another
  std::size_t terms = 0;   // bytes in which the caller says what it wants

  // The magic, the terms, a nonce, and a MAC that requires the secret: it lets a listener reject strangers at once,
  // without keeping state for them.
  std::size_t hello_bytes() const { return magic.size() + terms + sizeof(Nonce) + sizeof(Digest); }
};

// A verdict; after a welcome, the listener's nonce and its proof.
inline constexpr std::size_t answer_bytes = 1 + sizeof(Nonce) + sizeof(Digest);
inline constexpr std::size_t proof_bytes = sizeof(Digest);

enum class Side : std::uint8_t { caller, listener };

// What both have said, and the MACs over it that only they can make.
struct Transcript {
  const Greeting* greeting;
  HmacKey secret;
  Bytes hello;
  Nonce nonce = {};  // the listener's

  Digest code_of_hello() const;
  Digest proof(Side) const;
  Digest key(Side) const;  // for what this side sends after the greeting
};

// The listener's side, without I/O.
class GreetingListener {
 public:
  explicit GreetingListener(const Greeting& g) : greeting_(&g) {}

  // How many bytes to read next, and no more: what follows the greeting is the caller's. 0: the hello is to be
  // answered, or the caller has proven itself.
  std::size_t wanted() const;
  void take(std::span<const std::byte> arrived);  // at most wanted(); throws ProtocolError
  bool expects_answer() const { return !transcript_ && wanted() == 0; }
  std::span<const std::byte> terms() const;  // of the hello
  Bytes answer(std::string_view secret);     // to send; throws ProtocolError: the hello was made with another secret
  bool greeted() const { return !!transcript_; }  // the caller knows the secret, or replays such a caller's hello
  bool proven() const { return proven_; }
  const Transcript& transcript() const { return *transcript_; }  // of one that has greeted

 private:
  const Greeting* greeting_;
  Bytes input_;
  std::optional<Transcript> transcript_;
  bool proven_ = false;
};

// The caller's side.
class GreetingCaller {
 public:
  GreetingCaller(const Greeting&, std::string_view secret, std::span<const std::byte> terms);
  const Bytes& hello() const { return transcript_.hello; }  // to send first
  // To send next, and last. Throws ProtocolError when the listener refuses, or does not know the secret.
  Digest proof(std::span<const std::byte, answer_bytes> answer);
  const Transcript& transcript() const { return transcript_; }

 private:
  Transcript transcript_;
};

// Does the caller's side over a connection. False at the deadline; throws ProtocolError as proof() does, and
// system_error when the other end has gone.
bool greet(const Descriptor&, GreetingCaller&, const WaitLimit&);

}  // namespace trellis::net
