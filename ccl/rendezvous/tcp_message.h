// What goes over a connection to a TCP store. First a greeting, by which each side proves to the other that it knows
// the secret without sending it; then frames: a length in four bytes, lowest first, a byte that says what, the rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "ccl/rendezvous/notes.h"
#include "ccl/rendezvous/sha256.h"

namespace trellis::ccl {

using Nonce = std::array<std::byte, 32>;

// The other side sent what the protocol does not know.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The client says hello: the magic and its nonce. The server answers: its nonce and its proof. The client: its proof.
inline constexpr std::string_view magic = "trellis1";
inline constexpr std::size_t hello_bytes = magic.size() + sizeof(Nonce);
inline constexpr std::size_t answer_bytes = sizeof(Nonce) + sizeof(Digest);
inline constexpr std::size_t proof_bytes = sizeof(Digest);

enum class Side : std::uint8_t { client, server };
Digest proof(Side of, std::string_view secret, const Nonce& clients, const Nonce& servers);
Bytes hello(const Nonce& clients);

inline constexpr std::size_t length_bytes = 4;
inline constexpr std::size_t most_frame_bytes = 1 + 2 + most_key_bytes + most_value_bytes;

enum class Verb : std::uint8_t { set = 1, get = 2, add = 3 };
struct Request {
  Verb verb = Verb::get;
  std::string key = {};
  Bytes value = {};                                              // set
  std::int64_t amount = 0;                                       // add
  std::chrono::milliseconds wait{0};                             // get: how long the server may keep the question
  static constexpr std::chrono::milliseconds longest{1u << 31};  // of one such wait
};
Bytes frame_of(const Request&);
Request request_in(std::span<const std::byte> body);  // of a frame, without its length; throws Refused

enum class Outcome : std::uint8_t {
  done = 1,     // set: nothing; get: the value; add: the sum as a counter
  not_yet = 2,  // get: the wait is over
  wrong = 3,    // a text: the caller's mistake
  full = 4      // a text: no room
};
struct Reply {
  Outcome outcome = Outcome::done;
  Bytes content = {};
};
Bytes frame_of(const Reply&);
Reply reply_in(std::span<const std::byte> body);  // throws Refused

// The length that a frame begins with. Throws Refused for none and for more than most_frame_bytes, before anything is
// made room for.
std::size_t body_bytes(std::span<const std::byte, length_bytes>);

// The server's side of one connection, without the connection: what came goes in, whole requests come out.
class Session {
 public:
  Session(std::string secret, const Nonce& nonce) : secret_(std::move(secret)), nonce_(nonce) {}

  void take(std::span<const std::byte> arrived);  // throws Refused
  bool known() const { return stage_ == Stage::known; }
  bool in_the_middle() const { return !input_.empty(); }  // of a frame
  std::optional<Request> request();                       // the next whole one; throws Refused
  Bytes answer();                                         // what the greeting has to send, once

 private:
  enum class Stage { hello, proof, known };
  bool greet();
  void drop(std::size_t bytes);

  std::string secret_;
  Nonce nonce_, clients_ = {};
  Stage stage_ = Stage::hello;
  Bytes input_, answer_;
};

}  // namespace trellis::ccl
