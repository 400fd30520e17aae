// What was sent over a rail and should have arrived: some of it is under way longer than it may be, or the peer has not
// told anything lately.
#pragma once

#include <chrono>
#include <cstdint>

#include "ccl/store.h"

namespace trellis::ccl::libfabric {

class Overdue {
 public:
  enum class Is : std::uint8_t { fine, unsure, stopped };  // unsure: the peer should be asked

  // `arrived`: as the peer told at `heard`. Time counts only while this is called often: where we ourselves did not go
  // on, nothing is the rail's fault.
  Is look(std::uint64_t sent, std::uint64_t arrived, Deadline heard, Deadline now, std::chrono::milliseconds patience) {
    const bool we_paused = now - looked_ > patience / 2;
    looked_ = now;
    if (arrived >= sent)
      since_ = {};
    else if (since_ == Deadline() || arrived_ != arrived || we_paused)
      since_ = now, arrived_ = arrived;
    else if (heard - since_ >= patience)
      return Is::stopped;
    else if (now - since_ >= patience / 2)
      return Is::unsure;
    return Is::fine;
  }

 private:
  std::uint64_t arrived_ = 0;
  Deadline looked_ = {};
  Deadline since_ = {};  // when so many had arrived, and more had been sent; none: all had
};

}  // namespace trellis::ccl::libfabric
