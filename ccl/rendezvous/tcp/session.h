// Server side of one TCP store connection as a state machine without I/O: received bytes go in, whole requests come
// out.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "ccl/rendezvous/tcp/frame.h"
#include "ccl/rendezvous/tcp/greeting.h"
#include "ccl/rendezvous/tcp/message.h"

namespace trellis::ccl {

class Session {
 public:
  void take(std::span<const std::byte> arrived);  // throws Refused, as do the functions below

  // Set once it has arrived whole, until it is answered.
  std::optional<Hello> hello() const;
  // Answers the hello, if it was made with this secret and for this port.
  Bytes welcome(const std::string& secret, int port);
  bool greeted() const { return stage_ != Stage::hello; }  // its hello needed the secret, but may be a replay
  bool known() const { return stage_ == Stage::known; }    // it has proven that it knows the secret

  bool in_the_middle() const { return !input_.empty(); }  // of a frame
  std::optional<Request> request();                       // the next whole one
  Bytes frame_of(const Reply& r) { return sent_->frame(body_of(r)); }

 private:
  enum class Stage { hello, proof, known };
  void expect_magic() const;
  void expect_proof();
  void drop(std::size_t bytes);

  Stage stage_ = Stage::hello;
  Bytes input_;
  Digest awaited_proof_ = {};
  std::optional<FrameChain> heard_, sent_;
};

}  // namespace trellis::ccl
