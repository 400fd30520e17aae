// A timeline: what ran where and when. The simulators record it; every report, trace and picture is computed from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/hardware/time/units.h"

namespace trellis::sim {

struct Track {
  std::string group;  // "core 0", "chip 12", "links"
  std::string name;   // "tensor", "dma queue 3", "12 -> 13"
};

// Why a span could not begin earlier.
enum class WaitReason : std::uint8_t { none, order, semaphore, port, data, peer, link };
std::string_view name(WaitReason);

struct Span {
  std::uint32_t track = 0;
  std::uint32_t label = 0;  // index from label_of
  Time start = 0;
  Time end = 0;
  Time ready = 0;           // when it could have begun on its track if nothing else had been missing
  std::int64_t cause = -1;  // the span whose end it waited for last; -1: none
  WaitReason wait = WaitReason::none;
  double bytes = 0;  // moved, for bandwidths
  double flops = 0;  // done, for the roofline
};

// A value that changes over time: a semaphore, bytes in flight.
struct Sample {
  std::uint32_t counter = 0;
  Time time = 0;
  double value = 0;
};

class Timeline {
 public:
  std::uint32_t track(std::string group, std::string name);  // adds a track
  std::uint32_t counter(std::string group, std::string name);
  std::uint32_t label_of(std::string_view);  // the same number for the same text
  const std::string& label(std::uint32_t l) const { return labels_[l]; }
  const std::vector<std::string>& labels() const { return labels_; }

  std::int64_t add(const Span& s) {
    spans.push_back(s);
    end = s.end > end ? s.end : end;
    return static_cast<std::int64_t>(spans.size()) - 1;
  }

  std::vector<Track> tracks;
  std::vector<Track> counters;
  std::vector<Span> spans;
  std::vector<Sample> samples;
  Time end = 0;

 private:
  std::vector<std::string> labels_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace trellis::sim
