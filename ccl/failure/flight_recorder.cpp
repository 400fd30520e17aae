#include "ccl/failure/flight_recorder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "ccl/failure/rank_dump_writer.h"
#include "ccl/plan/call_check.h"

namespace trellis::ccl {
namespace {

using nlohmann::json;

// PyTorch's name; ours, where it has no such type.
std::string_view torch_name(kernels::DType d) {
  using enum kernels::DType;
  static constexpr std::pair<kernels::DType, std::string_view> names[] = {
      {f64, "Double"},         {f32, "Float"},     {tf32, "Float"},
      {f16, "Half"},           {bf16, "BFloat16"}, {f8e4m3fn, "Float8_e4m3fn"},
      {f8e5m2, "Float8_e5m2"}, {i8, "Char"},       {u8, "Byte"},
      {i16, "Short"},          {i32, "Int"},       {i64, "Long"}};
  for (const auto& [type, word] : names)
    if (type == d) return word;
  return name(d);
}

json sizes(std::size_t bytes, kernels::DType type) {
  return json::array({json::array({bytes / kernels::size_of(type)})});
}

// The entry's fields except the times.
json entry_of(const FlightRecorderEntry& r, const RankDump& of) {
  const Call call{
      .operation = {.collective = r.collective, .root = r.root, .peer = r.peer}, .count = r.count, .type = r.type};
  const bool sized = r.division == nullptr && !schedule::uneven(r.collective) && r.collective != Collective::permute;
  const BufferBytes e = sized ? extents_of(call, of.rank, of.ranks) : BufferBytes{};
  json entry = {
      {"pg_id", 0},
      {"process_group", {"0", "trellis"}},
      {"collective_seq_id", r.operation},
      {"profiling_name", fmt::format("trellis:{}", r.division != nullptr ? r.division : schedule::name(r.collective))},
      {"input_sizes", sizes(e.input, r.type)},
      {"output_sizes", sizes(e.output, r.type)},
      {"input_dtypes", {torch_name(r.type)}},
      {"output_dtypes", {torch_name(r.type)}},
      {"is_p2p", r.points != 0},
      {"frames", json::array()},
      {"count", r.count},
      {"type", name(r.type)},
      {"root", r.root},
      {"peer", r.peer},
      {"operator", name(r.op)},
      {"points", r.points},
      {"algorithm", r.native              ? "native"
                    : r.config != nullptr ? text_of(*r.config)
                                          : ""}};
  if (r.not_native != nullptr) entry["not_native"] = *r.not_native;
  return entry;
}

}  // namespace

std::optional<FlightRecorderEntry> SharedRecorderEntry::read(std::uint64_t number) const {
  for (;;) {
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    if (version % 2 != 0 || number_.load(std::memory_order_relaxed) != number) return std::nullopt;
    FlightRecorderEntry entry;
    each(fields_, entry, [](const auto& shared, auto& value) { value = shared.load(std::memory_order_relaxed); });
    std::atomic_thread_fence(std::memory_order_acquire);
    if (version_.load(std::memory_order_relaxed) == version) return entry;
  }
}

std::uint64_t FlightRecorder::oldest() const {
  const std::uint64_t begun = begun_.load(std::memory_order_relaxed);
  return begun < kept ? 0 : begun - kept;
}

std::optional<FlightRecorderEntry> FlightRecorder::collective(std::uint64_t operation) const {
  for (std::uint64_t i = begun_.load(std::memory_order_relaxed), first = oldest(); i-- > first;)
    if (const auto r = entry(i); r && r->operation == operation && r->points == 0 && r->division == nullptr) return r;
  return std::nullopt;
}

std::optional<FlightRecorderEntry> FlightRecorder::last_at(std::uint64_t moment) const {
  for (std::uint64_t i = begun_.load(std::memory_order_relaxed), first = oldest(); i-- > first;)
    if (const auto r = entry(i); r && r->began <= moment) return r;
  return std::nullopt;
}

bool FlightRecorder::tells_of(std::uint64_t moment) const {
  if (begun_.load(std::memory_order_relaxed) <= kept) return true;
  const auto r = entry(oldest());
  return r && r->began <= moment;
}

std::string FlightRecorder::dump(const RankDump& of, std::uint64_t moment, std::chrono::milliseconds timeout) const {
  std::uint64_t begun = oldest();
  std::map<std::uint64_t, FlightRecorderEntry> then;  // by number; read at once, as they may soon be overwritten
  for (std::uint64_t i = begun, end = begun_.load(std::memory_order_relaxed); i < end; ++i)
    if (const auto r = entry(i); r && r->began <= moment) then.emplace(i, *r), begun = i + 1;
  json entries = json::array();
  for (const auto& [i, r] : then) {
    const bool ended = r.ended != 0 && r.ended <= moment;
    const std::int64_t began_ns = moments_.since_epoch_ns(r.began);
    json entry = entry_of(r, of);
    entry.update({{"record_id", i},
                  {"p2p_seq_id", r.points != 0 ? i + 1 : 0},
                  {"op_id", i + 1},
                  {"time_created_ns", began_ns},
                  {"time_discovered_started_ns", began_ns},
                  {"state", ended ? "completed" : "started"},
                  {"retired", ended},
                  {"timeout_ms", timeout.count()}});
    if (ended) {
      const std::int64_t ended_ns = moments_.since_epoch_ns(r.ended);
      entry["time_discovered_completed_ns"] = ended_ns;
      entry["duration_ms"] = static_cast<double>(ended_ns - began_ns) / 1e6;
    }
    entries.push_back(std::move(entry));
  }
  json own = part_of(of);
  own["written_ns"] = moments_.since_epoch_ns(moment);
  const json all = {
      {"version", "2.4"},
      {"pg_config", {{"0", {{"name", "0"}, {"desc", "trellis"}, {"ranks", fmt::format("0..{}", of.ranks - 1)}}}}},
      {"pg_status", {{"0", {{"last_enqueued_collective", begun}}}}},
      {"entries", entries},
      {"trellis", own}};
  return all.dump(1, ' ', false, json::error_handler_t::replace);
}

}  // namespace trellis::ccl
