#include "sim/timeline/chrome.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/timeline/rows.h"
#include "sim/timeline/text_buffer.h"

namespace trellis::sim {
namespace {

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Microseconds, exact to the picosecond.
std::string micros(Time t) { return fmt::format("{}.{:06}", t / us, t % us); }

void put_names(Text& text, const Timeline& timeline, const Rows& rows) {
  const auto name = [&](std::string_view what, std::size_t pid, std::size_t tid, std::string_view value) {
    put(text, "{{\"ph\":\"M\",\"name\":\"{0}_name\",\"pid\":{1},\"tid\":{2},\"args\":{{\"name\":{3}}}}},\n", what, pid,
        tid, json_text(value));
    put(text, "{{\"ph\":\"M\",\"name\":\"{0}_sort_index\",\"pid\":{1},\"tid\":{2},\"args\":{{\"sort_index\":{3}}}}},\n",
        what, pid, tid, what == "process" ? pid : tid);
  };
  for (std::size_t g = 0; g < rows.groups.size(); ++g) name("process", g + 1, 0, rows.groups[g]);
  for (std::size_t r = 0; r < rows.rows.size(); ++r)
    name("thread", rows.rows[r].group + 1, r + 1, row_name(timeline, rows.rows[r]));
}

void put_place(Text& text, const Rows& rows, std::size_t span, Time time) {
  const std::uint32_t row = rows.row_of[span];
  put(text, ",\"ts\":{},\"pid\":{},\"tid\":{}", micros(time), rows.rows[row].group + 1, row + 1);
}

void put_span(Text& text, const Timeline& timeline, const Rows& rows, std::uint32_t index,
              const std::vector<std::string>& labels) {
  const Span& s = timeline.spans[index];
  put(text, "{{\"ph\":\"X\",\"name\":{}", labels[s.label]);
  put_place(text, rows, index, s.start);
  put(text, ",\"dur\":{}", micros(s.end - s.start));
  std::string arguments;
  if (s.wait != Wait::none)
    arguments += fmt::format(",\"waited for\":\"{}\",\"waited, ps\":{}", name(s.wait), s.start - s.ready);
  if (s.bytes != 0) arguments += fmt::format(",\"bytes\":{}", s.bytes);
  if (s.flops != 0) arguments += fmt::format(",\"flops\":{}", s.flops);
  if (!arguments.empty()) put(text, ",\"args\":{{{}}}", arguments.substr(1));
  put(text, "}},\n");
  if (s.cause < 0) return;
  put(text, "{{\"ph\":\"s\",\"name\":\"cause\",\"cat\":\"cause\",\"id\":{}", index + 1);
  put_place(text, rows, static_cast<std::size_t>(s.cause), timeline.spans[s.cause].start);
  put(text, "}},\n{{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"cause\",\"cat\":\"cause\",\"id\":{}", index + 1);
  put_place(text, rows, index, s.start);
  put(text, "}},\n");
}

}  // namespace

std::string chrome_trace(const Timeline& timeline) {
  const Rows rows = rows_of(timeline);
  std::vector<std::string> labels;
  for (const std::string& label : timeline.labels()) labels.push_back(json_text(label));
  Text text;
  put(text, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  put_names(text, timeline, rows);
  for (const std::uint32_t s : rows.order) put_span(text, timeline, rows, s, labels);
  for (const Sample& s : timeline.samples)
    put(text, "{{\"ph\":\"C\",\"name\":{},\"ts\":{},\"pid\":{},\"args\":{{\"value\":{}}}}},\n",
        json_text(timeline.counters[s.counter].name), micros(s.time), rows.counter_groups[s.counter] + 1, s.value);
  // A JSON array must not end in a comma, so this last event gives the end of the trace.
  put(text, "{{\"ph\":\"M\",\"name\":\"trace_end\",\"pid\":0,\"args\":{{\"us\":{}}}}}\n]}}\n", micros(timeline.end));
  return fmt::to_string(text);
}

}  // namespace trellis::sim
