#include "ccl/recorder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "ccl/check.h"

namespace trellis::ccl {
namespace {

using nlohmann::json;

// As PyTorch names them.
std::string torch_name(kernels::DType d) {
  using enum kernels::DType;
  switch (d) {
    case f64:
      return "Double";
    case f32:
    case tf32:
      return "Float";
    case f16:
      return "Half";
    case bf16:
      return "BFloat16";
    case f8e4m3fn:
      return "Float8_e4m3fn";
    case f8e5m2:
      return "Float8_e5m2";
    case i8:
      return "Char";
    case u8:
      return "Byte";
    case i16:
      return "Short";
    case i32:
      return "Int";
    case i64:
      return "Long";
    default:
      return std::string(name(d));
  }
}

json sizes(std::size_t bytes, kernels::DType type) {
  return json::array({json::array({bytes / kernels::size_of(type)})});
}

}  // namespace

Moments::Moments()
    : first_(now()),
      first_ns_(
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count()),
      first_time_(Clock::now()) {}

// The clock's pace is what it has made since the beginning.
std::int64_t Moments::since_epoch_ns(std::uint64_t moment) const {
  const double passed = std::chrono::duration<double, std::nano>(Clock::now() - first_time_).count();
  const double ticks = static_cast<double>(now() - first_);
  return first_ns_ + static_cast<std::int64_t>(static_cast<double>(moment - first_) * passed / std::max(ticks, 1.0));
}

std::string FlightRecorder::dump(const Whose& whose) const {
  json entries = json::array();
  for (std::uint64_t i = begun_ < kept ? 0 : begun_ - kept; i < begun_; ++i) {
    const Recorded& r = ring_[i % kept];
    const Call call{.collective = r.collective, .count = r.count, .type = r.type, .root = r.root, .peer = r.peer};
    const bool uneven = schedule::uneven(r.collective) || r.collective == Collective::permute;
    const Extents e = uneven ? Extents{} : extents_of(call, whose.rank, whose.ranks);
    const std::int64_t began = moments_.since_epoch_ns(r.began);
    json entry = {{"record_id", i},
                  {"pg_id", 0},
                  {"process_group", {"0", "trellis"}},
                  {"collective_seq_id", r.operation},
                  {"p2p_seq_id", r.points != 0 ? i + 1 : 0},
                  {"op_id", i + 1},
                  {"profiling_name", fmt::format("trellis:{}", schedule::name(r.collective))},
                  {"time_created_ns", began},
                  {"time_discovered_started_ns", began},
                  {"input_sizes", sizes(e.input, r.type)},
                  {"output_sizes", sizes(e.output, r.type)},
                  {"input_dtypes", {torch_name(r.type)}},
                  {"output_dtypes", {torch_name(r.type)}},
                  {"state", r.ended != 0 ? "completed" : "started"},
                  {"retired", r.ended != 0},
                  {"timeout_ms", whose.timeout_ms},
                  {"is_p2p", r.points != 0},
                  {"frames", json::array()},
                  {"count", r.count},
                  {"type", name(r.type)},
                  {"root", r.root},
                  {"peer", r.peer},
                  {"operator", name(r.op)},
                  {"points", r.points},
                  {"algorithm", r.choice != nullptr ? text_of(*r.choice) : ""}};
    if (r.ended != 0) {
      const std::int64_t ended = moments_.since_epoch_ns(r.ended);
      entry["time_discovered_completed_ns"] = ended;
      entry["duration_ms"] = static_cast<double>(ended - began) / 1e6;
    }
    entries.push_back(std::move(entry));
  }
  const json all = {
      {"version", "2.4"},
      {"pg_config", {{"0", {{"name", "0"}, {"desc", "trellis"}, {"ranks", fmt::format("0..{}", whose.ranks - 1)}}}}},
      {"pg_status", {{"0", {{"last_enqueued_collective", begun_}}}}},
      {"entries", entries},
      {"trellis",
       {{"rank", whose.rank},
        {"ranks", whose.ranks},
        {"communicator", whose.communicator},
        {"process", getpid()},
        {"written_ns", moments_.since_epoch_ns(Moments::now())},
        {"error", whose.error},
        {"waits_for", whose.waits_for},
        {"step", whose.step}}}};
  return all.dump(1);
}

}  // namespace trellis::ccl
