#include <nlohmann/json.hpp>

#include "sim/hardware/timeline/summary.h"

namespace trellis::sim {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Timeline& timeline, const TrackUse& use) {
  Json stalled = Json::object();
  for (std::size_t w = 0; w < wait_count; ++w)
    if (use.stalled_by[w] > 0) stalled[std::string(name(static_cast<WaitReason>(w)))] = use.stalled_by[w];
  const Track& track = timeline.tracks[use.track];
  return {{"group", track.group}, {"name", track.name},        {"spans", use.spans},
          {"busy_ps", use.busy},  {"stalled_ps", use.stalled}, {"stalled_by_ps", stalled},
          {"idle_ps", use.idle},  {"bytes", use.bytes},        {"flops", use.flops}};
}

Json json_of(const RooflinePoint& p) {
  return {{"roof", p.roof.name},
          {"bytes_per_second_peak", p.roof.bytes_per_second},
          {"bytes", p.bytes},
          {"bytes_per_second", p.bandwidth},
          {"flops_per_byte", p.intensity},
          {"flops_per_second", p.attained},
          {"flops_per_second_attainable", p.attainable},
          {"memory_bound", p.memory_bound}};
}

Json json_of(const Timeline& timeline, const CriticalPathTotal& part, Time end) {
  Json json = {{"words", words(timeline, part)},
               {"ps", part.time},
               {"share", static_cast<double>(part.time) / static_cast<double>(end)},
               {"pieces", part.pieces}};
  if (part.waiting) json["waits_for"] = name(part.wait);
  if (part.unknown) return json;
  json["group"] = timeline.tracks[part.track].group;
  json["name"] = timeline.tracks[part.track].name;
  return json;
}

}  // namespace

std::string summary_json(const Timeline& timeline, const Summary& s) {
  const double seconds = in_seconds(s.end);
  Json json = {{"time_ps", s.end},
               {"spans", s.spans},
               {"bytes", s.bytes},
               {"flops", s.flops},
               {"bytes_per_second", seconds > 0 ? s.bytes / seconds : 0},
               {"flops_per_second", seconds > 0 ? s.flops / seconds : 0}};
  if (s.peak_flops > 0) {
    json["flops_per_second_peak"] = s.peak_flops;
    json["mfu"] = seconds > 0 ? s.flops / seconds / s.peak_flops : 0;
  }
  json["tracks"] = Json::array();
  for (const TrackUse& use : s.tracks) json["tracks"].push_back(json_of(timeline, use));
  json["critical_path"] = Json::array();
  for (const CriticalPathTotal& part : s.parts) json["critical_path"].push_back(json_of(timeline, part, s.end));
  json["roofline"] = Json::array();
  for (const RooflinePoint& p : s.roofline) json["roofline"].push_back(json_of(p));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace trellis::sim
