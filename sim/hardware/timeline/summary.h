// Summarises a timeline: how busy each track was and why it waited, rates, the critical path, the roofline.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/hardware/timeline/timeline.h"

namespace trellis::sim {

inline constexpr std::size_t wait_count = 7;

// busy, stalled and idle add up to the whole time.
struct TrackUse {
  std::uint32_t track = 0;
  std::size_t spans = 0;
  Time busy = 0;  // at least one span runs
  Time stalled = 0;
  std::array<Time, wait_count> stalled_by{};  // by WaitReason: ready, but this was missing
  Time idle = 0;                              // nothing to do
  double bytes = 0, flops = 0;
};

// A memory or link whose bandwidth may be the bound.
struct BandwidthRoof {
  std::string name;                        // "HBM"
  double bytes_per_second = 0;             // of all its tracks together
  std::vector<std::uint32_t> tracks = {};  // whose bytes count; empty: all tracks
};

struct HardwarePeaks {
  double flops_per_second = 0;  // 0: not known
  std::vector<BandwidthRoof> roofs = {};
};

struct RooflinePoint {
  BandwidthRoof roof;
  double bytes = 0;
  double intensity = 0;  // flops a byte; 0 without flops or bytes
  double attained = 0;   // flops a second
  double attainable = 0;
  double bandwidth = 0;  // bytes a second
  bool memory_bound = false;
};

// A piece of the critical path: a span at work, or the time between its cause's end and its start.
struct CriticalPathPiece {
  std::int64_t span = -1;  // -1: before the first span
  Time start = 0, end = 0;
  bool waiting = false;
};

// The sum of the pieces on one track that are at work, or that wait for the same reason.
struct CriticalPathTotal {
  std::uint32_t track = 0;
  WaitReason wait = WaitReason::none;  // of pieces that wait
  bool waiting = false, unknown = false;
  Time time = 0;
  std::size_t pieces = 0;
  std::uint32_t label = 0;  // the label with most of the time
  std::size_t labels = 0;   // number of different labels
};

struct Summary {
  Time end = 0;
  std::size_t spans = 0;
  double bytes = 0, flops = 0;
  double peak_flops = 0;
  std::vector<TrackUse> tracks;
  std::vector<RooflinePoint> roofline;
  std::vector<CriticalPathPiece> path;   // without gaps from 0 to end
  std::vector<CriticalPathTotal> parts;  // the longest first
};

// Throws invalid_argument for an inconsistent timeline or impossible peaks.
Summary summarize(const Timeline&, const HardwarePeaks& = {});

// Goes back from the last end to what it waited for, and so on. A span without a cause follows the one before it on its
// track.
std::vector<CriticalPathPiece> critical_path(const Timeline&);

std::string words(const Timeline&, const CriticalPathTotal&);  // "core 0, tensor: matmul and 3 others"
std::string summary_text(const Timeline&, const Summary&, std::size_t most_tracks = 40);
std::string summary_json(const Timeline&, const Summary&);

}  // namespace trellis::sim
