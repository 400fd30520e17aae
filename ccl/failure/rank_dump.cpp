#include "ccl/failure/rank_dump.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>

#include "ccl/failure/checked_json.h"
#include "schedule/collective_traits.h"
#include "text/refuse.h"

namespace trellis::ccl {
namespace {

using schedule::Collective;

constexpr std::string_view troubles[] = {"none", "lost", "mismatch", "aborted", "elsewhere", "own"};
constexpr std::string_view standings[] = {"alive", "stopped", "silent", "ended", "left"};
constexpr Rank most_ranks = 1 << 16;  // limit for a communicator, since memory is allocated for each rank

template <class Enum, std::size_t count>
Enum one_of(const CheckedJson& whole, const char* key, const std::string_view (&names)[count]) {
  if (!whole.has(key)) return {};
  const std::string word = whole.words(key);
  for (std::size_t i = 0; i < count; ++i)
    if (names[i] == word) return static_cast<Enum>(i);
  text::refuse("'{}' is '{}': expected one of {}", key, word, fmt::join(names, ", "));
}

Rank rank_or_none(const CheckedJson& whole, const char* key, Rank ranks) {
  return whole.has(key) ? static_cast<Rank>(whole.number(key, -1, ranks - 1)) : -1;
}

DumpedEntry entry_in(const CheckedJson& entry, Rank ranks) {
  const std::string profiled = entry.words("profiling_name");
  constexpr std::string_view ours = "trellis:";
  if (!profiled.starts_with(ours)) text::refuse("'profiling_name' is '{}': expected {}OPERATION", profiled, ours);
  const std::string what = profiled.substr(ours.size());
  DumpedEntry e;
  e.operation = static_cast<std::uint64_t>(entry.number("collective_seq_id", 0));
  e.under_way = entry.words("state") != "completed";
  e.began_ns = entry.has("time_created_ns") ? entry.number("time_created_ns", 0) : 0;
  if (what == "split" || what == "shrink") {
    e.division = e.call = what;
    return e;
  }
  const Collective collective = schedule::collective_named(what);
  e.points = collective == Collective::send_recv;
  const bool bare = e.points || collective == Collective::barrier;
  e.call = call_text(collective, bare ? 0 : static_cast<std::uint64_t>(entry.number("count", 0)),
                     bare ? "" : entry.words("type"), schedule::reduces(collective) ? entry.words("operator") : "",
                     schedule::rooted(collective) ? static_cast<Rank>(entry.number("root", 0, ranks - 1)) : 0,
                     e.points ? static_cast<std::uint64_t>(entry.number("points", 0)) : 0);
  return e;
}

// Assigned field by field: GCC 12 destroys an aggregate's members twice when a later one throws.
PeerSnapshot seen_in(const CheckedJson& seen, Rank ranks) {
  PeerSnapshot s;
  s.last.operation = static_cast<std::uint64_t>(seen.number("operation", 0));
  s.last.points = seen.number("points", 0, 1) == 1;
  s.last.division = seen.words("division");
  s.last.under_way = seen.number("under_way", 0, 1) == 1;
  s.last.call = seen.words("call");
  s.waits_for = rank_or_none(seen, "waits_for", ranks);
  s.process = seen.number("process", 0);
  s.standing = one_of<RankStatus>(seen, "standing", standings);
  return s;
}

PendingMessage pending_in(const CheckedJson& pending, Rank ranks) {
  PendingMessage p;
  p.peer = static_cast<Rank>(pending.number("peer", 0, ranks - 1));
  p.receives = pending.number("receives", 0, 1) == 1;
  p.bytes = static_cast<std::uint64_t>(pending.number("bytes", 0));
  return p;
}

void read_relations(const CheckedJson& own, RankDump& d) {
  d.parent = own.has("parent") ? own.words("parent") : "";
  own.each("in_parent",
           [&](const CheckedJson& r) { d.in_parent.push_back(static_cast<Rank>(r.as_number(0, most_ranks))); });
  if (!d.in_parent.empty() && d.in_parent.size() != static_cast<std::size_t>(d.ranks))
    text::refuse("'in_parent' has {} ranks: expected none or {}", d.in_parent.size(), d.ranks);
  own.each("pending", [&](const CheckedJson& p) { d.pending.push_back(pending_in(p, d.ranks)); });
  own.each("seen", [&](const CheckedJson& s) { d.seen.push_back(seen_in(s, d.ranks)); });
  if (!d.seen.empty() && d.seen.size() != static_cast<std::size_t>(d.ranks))
    text::refuse("'seen' has {} ranks: expected none or {}", d.seen.size(), d.ranks);
  own.each("absent", [&](const CheckedJson& r) { d.absent.push_back(static_cast<Rank>(r.as_number(0, d.ranks - 1))); });
  own.each("later", [&](const CheckedJson& text) { d.later.push_back(text.as_words()); });
}

}  // namespace

std::string_view name(FailureKind t) { return troubles[static_cast<std::size_t>(t)]; }
std::string_view name(RankStatus s) { return standings[static_cast<std::size_t>(s)]; }

std::string call_text(Collective what, std::uint64_t count, std::string_view type, std::string_view op, Rank root,
                      std::uint64_t points) {
  if (what == Collective::send_recv)
    return points == 0 ? "sends and receives" : fmt::format("{} sends and receives", points);
  std::string text(schedule::name(what));
  if (what == Collective::barrier) return text;
  text += schedule::counts_by_pair(what) ? fmt::format(" of {}", type) : fmt::format(" of {} {}", count, type);
  if (schedule::reduces(what)) text += fmt::format(", {}", op);
  if (schedule::rooted(what)) text += fmt::format(", root {}", root);
  return text;
}

RankDump rank_dump_in(std::string_view text) {
  const nlohmann::json all = parsed(text);
  const CheckedJson dump(all), own = dump.part("trellis");
  RankDump d;
  d.ranks = static_cast<Rank>(own.number("ranks", 1, most_ranks));
  d.rank = static_cast<Rank>(own.number("rank", 0, d.ranks - 1));
  d.waits_for = static_cast<Rank>(own.number("waits_for", -1, d.ranks - 1));
  d.step = static_cast<std::int32_t>(own.number("step", -1, std::numeric_limits<std::int32_t>::max()));
  d.communicator = own.words("communicator");
  d.moment_ns = own.number("written_ns", 0);
  d.error = own.words("error");
  if (own.has("process")) d.process = own.number("process", 0);
  if (own.has("process_identity")) d.process_identity = own.words("process_identity");
  if (own.has("job_identity")) d.job_identity = own.words("job_identity");
  if (own.has("signal")) d.signal = own.words("signal");
  d.trouble = own.has("trouble") ? one_of<FailureKind>(own, "trouble", troubles)
              : d.error.empty()  ? FailureKind::none
                                 : FailureKind::lost;
  d.blamed = rank_or_none(own, "blamed", d.ranks);
  read_relations(own, d);
  dump.require_list("entries");
  dump.each("entries", [&](const CheckedJson& e) { d.entries.push_back(entry_in(e, d.ranks)); });
  return d;
}

}  // namespace trellis::ccl
