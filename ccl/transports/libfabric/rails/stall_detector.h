// StallDetector: tells whether a rail to one peer has stopped: the peer still reports, when the patience has passed,
// that something sent over the rail has not arrived. After half the patience the peer is to be asked for a report.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "ccl/store.h"
#include "ccl/transports/libfabric/rails/rail_set.h"

namespace trellis::ccl::libfabric {

class StallDetector {
 public:
  enum class Is : std::uint8_t { fine, unsure, stopped };  // unsure: the peer should be asked

  // `arrived`: as the peer reported at `heard`. Time counts only while this is called often: if this process paused,
  // that is not the rail's fault. A peer that resumes after a pause may answer before it has counted its arrivals, so
  // it must have answered `enough` times.
  Is look(std::uint64_t sent, std::uint64_t arrived, Deadline heard, Deadline now, std::chrono::milliseconds patience,
          int enough = 1) {
    const bool we_paused = now - looked_ > patience / 2;
    looked_ = now;
    answers_ += heard != heard_ ? 1 : 0;
    heard_ = heard;
    if (arrived >= sent)
      since_ = {};
    else if (since_ == Deadline() || arrived_ != arrived || we_paused)
      since_ = now, arrived_ = arrived, answers_ = 0;
    else if (heard - since_ >= patience && answers_ >= enough)
      return Is::stopped;
    else if (now - since_ >= patience / 2)
      return Is::unsure;
    return Is::fine;
  }

 private:
  std::uint64_t arrived_ = 0;
  int answers_ = 0;
  Deadline looked_ = {}, heard_ = {};
  Deadline since_ = {};  // since when no more than arrived_ has arrived; none: all has
};

}  // namespace trellis::ccl::libfabric
