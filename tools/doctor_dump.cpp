#include "tools/doctor_dump.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "schedule/collective.h"

namespace trellis::tools {
namespace {

using nlohmann::json;
using schedule::Collective;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t most_ranks = 1 << 24;

const json& part(const json& whole, const char* key) {
  if (!whole.is_object() || !whole.contains(key)) throw std::invalid_argument(fmt::format("'{}' is missing", key));
  return whole.at(key);
}

std::int64_t number(const json& whole, const char* key, std::int64_t least, std::int64_t greatest) {
  const json& n = part(whole, key);
  const bool fits =
      n.is_number_unsigned() ? n.get<std::uint64_t>() <= static_cast<std::uint64_t>(most) : n.is_number_integer();
  if (!fits || n.get<std::int64_t>() < least || n.get<std::int64_t>() > greatest)
    throw std::invalid_argument(fmt::format("'{}' is {}: expected a whole number from {} to {}", key,
                                            n.is_number() ? n.dump() : n.type_name(), least, greatest));
  return n.get<std::int64_t>();
}

// What is not printable would reach a terminal.
std::string words(const json& whole, const char* key) {
  const json& text = part(whole, key);
  if (!text.is_string()) throw std::invalid_argument(fmt::format("'{}' is {}: expected text", key, text.type_name()));
  std::string all = text.get<std::string>();
  for (char& c : all)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') c = '?';
  return all;
}

std::string call_in(const json& entry, const RankDump& of) {
  const std::string name = words(entry, "profiling_name");
  constexpr std::string_view ours = "trellis:";
  if (!name.starts_with(ours))
    throw std::invalid_argument(fmt::format("'profiling_name' is '{}': expected {}OPERATION", name, ours));
  const Collective what = schedule::collective_named(std::string_view(name).substr(ours.size()));
  if (what == Collective::send_recv) return fmt::format("{} sends and receives", number(entry, "points", 0, most));
  if (what == Collective::barrier) return "barrier";
  std::string text =
      fmt::format("{} of {} {}", schedule::name(what), number(entry, "count", 0, most), words(entry, "type"));
  if (schedule::reduces(what)) text += ", " + words(entry, "operator");
  if (schedule::rooted(what)) text += fmt::format(", root {}", number(entry, "root", 0, of.ranks - 1));
  return text;
}

}  // namespace

RankDump rank_dump_in(std::string_view text) {
  const json dump = json::parse(text, nullptr, false);
  if (dump.is_discarded()) throw std::invalid_argument("it is not JSON");
  const json& own = part(dump, "trellis");
  RankDump d;
  d.ranks = static_cast<int>(number(own, "ranks", 1, most_ranks));
  d.rank = static_cast<int>(number(own, "rank", 0, d.ranks - 1));
  d.waits_for = static_cast<int>(number(own, "waits_for", -1, d.ranks - 1));
  d.step = static_cast<int>(number(own, "step", -1, std::numeric_limits<int>::max()));
  d.communicator = words(own, "communicator");
  d.written_ns = number(own, "written_ns", 0, most);
  d.error = words(own, "error");
  const json& entries = part(dump, "entries");
  if (!entries.is_array()) throw std::invalid_argument("'entries' is no list");
  if (entries.empty()) return d;
  const json& last = entries.back();
  d.call = call_in(last, d);
  d.operation = static_cast<std::uint64_t>(number(last, "collective_seq_id", 0, most));
  d.points = number(last, "points", 0, most) != 0;
  d.under_way = words(last, "state") != "completed";
  return d;
}

}  // namespace trellis::tools
