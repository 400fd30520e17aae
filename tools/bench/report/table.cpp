#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "ccl/plan/call_check.h"
#include "schedule/collective_traits.h"
#include "tools/bench/report/result.h"
#include "tools/program/provenance.h"

namespace trellis::tools {

using namespace measure;
namespace {

// A cell of a row or of the heading lines: right-aligned text.
struct TableCell {
  std::string words;
  int width;
  int gap = 2;  // spaces before it
};

std::string line_of(const std::vector<TableCell>& cells) {
  std::string line;
  for (const TableCell& c : cells)
    line += fmt::format("{}{:>{}}", std::string(static_cast<std::size_t>(c.gap), ' '), c.words, c.width);
  return line.substr(2);  // the first has no gap
}

std::string commented(std::string line) {
  line.front() = '#';
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  localtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

constexpr int timestamp_width = 19;

std::string average_text(const BenchTotals& t) {
  return fmt::format("{:.6g}", t.rows == 0 ? 0 : t.busbw_sum / static_cast<double>(t.rows));
}

std::string wrong_text(const BenchResult& r) {
  return r.measured.checked ? fmt::format("{}", r.measured.wrong) : "N/A";
}

std::vector<TableCell> halves(const BenchSettings& s, std::array<const char*, 10> words) {
  std::vector<TableCell> cells = {{words[0], 7}, {words[1], 6}, {words[2], 6}, {words[3], 6}};
  if (s.per_iteration)
    for (std::size_t i = 4; i < 8; ++i) cells.push_back({words[i], 7});
  if (s.interval)
    for (std::size_t i = 8; i < 10; ++i) cells.push_back({words[i], 7});
  return cells;
}

void append(std::vector<TableCell>& cells, const std::vector<TableCell>& more) {
  cells.insert(cells.end(), more.begin(), more.end());
}

int width_of(const std::vector<TableCell>& cells) {
  int width = -cells.front().gap;
  for (const TableCell& c : cells) width += c.width + c.gap;
  return width;
}

// Appends the median and the 99th percentile, out of place, then in place. Their columns follow both halves, because
// readers of nccl-tests' tables count columns only up to there. A simulated time has neither.
void append_spread(const BenchSettings& s, std::vector<TableCell>& cells, const std::array<std::string, 4>& words) {
  if (s.simulated) return;
  for (const std::string& word : words) cells.push_back({word, 8});
}

std::array<std::string, 4> spread_of(const BenchResult* out, const BenchResult* in) {
  std::array<std::string, 4> words;
  for (std::size_t half = 0; half < 2; ++half) {
    const BenchResult* const r = half == 0 ? out : in;
    const Statistics all = statistics_of(r == nullptr ? std::vector<double>{} : r->measured.us);
    words[2 * half] = r == nullptr ? "N/A" : fitted(all.percentile(50), 7);
    words[2 * half + 1] = r == nullptr ? "N/A" : fitted(all.percentile(99), 7);
  }
  return words;
}

void append_rest(const BenchSettings& s, std::vector<TableCell>& cells, const std::string& time,
                 const std::string& algorithm) {
  if (s.show_algorithm) cells.push_back({algorithm, 22});
  if (s.timestamps) cells.push_back({time, timestamp_width});
}

std::string nccl_columns(const BenchSettings& s) {
  const char* const time = s.cpu_time ? "cputime" : "time";
  const auto names = halves(s, {time, "algbw", "busbw", "#wrong", "min", "max", "p99", "cv", "low", "high"});
  const auto units = halves(s, {"(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)", "(us)", "(%)", "(us)", "(us)"});
  std::vector<TableCell> top = {{"", 12}, {"", 12}, {"", 8}, {"", 6}, {"", 6}};
  std::vector<TableCell> middle = {{"size", 12}, {"count", 12}, {"type", 8}, {"redop", 6}, {"root", 6}};
  std::vector<TableCell> bottom = {{"(B)", 12}, {"(elements)", 12}, {"", 8}, {"", 6}, {"", 6}};
  const int width = width_of(names);
  for (const char* half : {"out-of-place", "in-place"}) {
    top.push_back({fmt::format("{:^{}}", half, width), width});
    append(middle, names);
    append(bottom, units);
  }
  append_spread(s, top, {"", "out", "", "in"});
  append_spread(s, middle, {"p50", "p99", "p50", "p99"});
  append_spread(s, bottom, {"(us)", "(us)", "(us)", "(us)"});
  append_rest(s, middle, "timestamp", "algorithm");
  for (auto* cells : {&top, &middle, &bottom}) cells->front().gap = 2;
  return commented(line_of(top)) + commented(line_of(middle)) + commented(line_of(bottom));
}

std::vector<TableCell> nccl_half(const BenchSettings& s, const BenchResult* r) {
  if (r == nullptr) return halves(s, {"N/A", "N/A", "N/A", "N/A", "N/A", "N/A", "N/A", "N/A", "N/A", "N/A"});
  const Statistics all = statistics_of(r->measured.us);
  std::vector<TableCell> cells = {{fitted(all.average, 7), 7},
                                  {fitted(r->algbw_GBps(all.average), 6), 6},
                                  {fitted(r->busbw_GBps(all.average), 6), 6},
                                  {wrong_text(*r), 6}};
  if (s.interval) append(cells, {{fitted(r->low_us, 7), 7}, {fitted(r->high_us, 7), 7}});
  if (!s.per_iteration) return cells;
  const auto skipped = std::min(static_cast<std::size_t>(s.skipped), r->measured.us.size() - 1);
  const Statistics kept =
      statistics_of({r->measured.us.begin() + static_cast<std::ptrdiff_t>(skipped), r->measured.us.end()});
  const double variation = kept.average > 0 ? 100 * kept.deviation / kept.average : 0;
  for (const double value : {kept.least, kept.most, kept.percentile(99), variation})
    cells.push_back({fitted(value, 7), 7});
  return cells;
}

std::string nccl_row(const BenchSettings& s, const BenchResult& any, const BenchResult* out, const BenchResult* in) {
  const bool reduces = schedule::reduces(any.collective);
  std::vector<TableCell> cells = {{fmt::format("{}", any.bytes), 12},
                                  {fmt::format("{}", any.count), 12},
                                  {std::string(type_word(any.type, s.style)), 8},
                                  {reduces ? std::string(reduction_word(any.reduction, s.style)) : "none", 6},
                                  {fmt::format("{}", any.root), 6}};
  append(cells, nccl_half(s, out));
  append(cells, nccl_half(s, in));
  append_spread(s, cells, spread_of(out, in));
  append_rest(s, cells, s.timestamps ? now_text() : "", any.measured.algorithm);
  return line_of(cells) + "\n";
}

std::string nccl_heading(const BenchSettings& s, const std::vector<std::string>& ranks) {
  const std::string iterations =
      s.iterations != 0 ? fmt::format("{}", s.iterations) : fmt::format("{}-{}", least_iterations, most_iterations);
  std::string text = "# trellis bench, in the style of nccl-tests\n";
  text += origin_comment("#  ");
  text += fmt::format("# Collective test starting: {}\n", s.op.word);
  text += fmt::format(
      "# nThread {} nGpus 1 minBytes {} maxBytes {} {} warmup iters: {} iters: {} agg iters: {} validate: {} graph: 0 "
      "unalign: {}\n#\n# Using devices\n",
      s.threads ? ranks.size() : 1, s.sizes.front(), s.most_bytes, s.step_text, s.warm_ups, iterations, s.grouped,
      s.check_passes, s.unaligned);
  for (const std::string& rank : ranks) text += "#  " + rank + "\n";
  return text + "#\n" + nccl_columns(s);
}

std::string time_heading(const BenchSettings& s, const std::string& stat) {
  return fmt::format("{}:{}(us)", s.cpu_time ? "cputime" : "time", stat);
}

// A column of nccom-test: wide enough for its heading and for the expected numbers.
TableCell column(const std::string& heading, const std::string& words, int least) {
  return {words, std::max(least, static_cast<int>(heading.size())), 4};
}

using Columns = std::vector<std::pair<std::string, std::string>>;

// Heading and text of each column; without a result, headings only.
Columns nccom_columns(const BenchSettings& s, const BenchResult* r) {
  const Statistics all = statistics_of(r == nullptr ? std::vector<double>{} : r->measured.us);
  const auto words = [&](auto value) { return r == nullptr ? std::string() : fmt::format("{}", value); };
  const auto number = [&](double value) { return r == nullptr ? std::string() : fmt::format("{:.2f}", value); };
  Columns columns = {{"size(B)", words(r == nullptr ? 0 : r->bytes)},
                     {"count(elems)", words(r == nullptr ? 0 : r->count)}};
  if (s.show_sizes) {
    columns.emplace_back("total_input_size(B)", words(r == nullptr ? 0 : r->input_bytes));
    columns.emplace_back("total_output_size(B)", words(r == nullptr ? 0 : r->output_bytes));
  }
  columns.emplace_back("type", words(r == nullptr ? "" : type_word(r->type, s.style)));
  for (const std::string& stat : s.stats)
    columns.emplace_back(time_heading(s, stat),
                         number(stat == "avg" ? all.average : all.percentile(std::stod("0" + stat.substr(1)))));
  if (s.interval) {
    columns.emplace_back("time:low(us)", number(r == nullptr ? 0 : r->low_us));
    columns.emplace_back("time:high(us)", number(r == nullptr ? 0 : r->high_us));
  }
  columns.emplace_back("algbw(GB/s)", number(r == nullptr ? 0 : r->algbw_GBps(all.average)));
  columns.emplace_back("busbw(GB/s)", number(r == nullptr ? 0 : r->busbw_GBps(all.average)));
  if (s.check_passes != 0) columns.emplace_back("#wrong", r == nullptr ? "" : wrong_text(*r));
  if (s.in_place) columns.emplace_back("place", r == nullptr ? "" : r->in_place ? "in" : "out");
  if (s.show_algorithm) columns.emplace_back("algorithm", r == nullptr ? "" : r->measured.algorithm);
  return columns;
}

std::string nccom_line(const Columns& columns, bool heading) {
  std::vector<TableCell> cells;
  for (const auto& [name, words] : columns)
    cells.push_back(column(name, heading ? name : words,
                           name == "algorithm" ? 22
                           : name == "size(B)" ? 12
                           : name == "type"    ? 8
                                               : 6));
  cells.front().gap = 2;
  return line_of(cells) + "\n";
}

}  // namespace

std::string fitted(double value, int width) {
  for (int decimals = 2; decimals >= 0; --decimals) {
    const std::string text = fmt::format("{:.{}f}", value, decimals);
    if (static_cast<int>(text.size()) <= width) return text;
  }
  return fmt::format("{:.{}e}", value, std::max(0, width - 6));
}

BenchResult result_of(const BenchSettings& s, const std::vector<ccl::Call>& calls, bool in_place) {
  const ccl::Call& call = calls.front();  // only the counts of the _v collectives differ between them
  const schedule::Collective c = call.operation.collective;
  const bool root = schedule::rooted(c) || c == schedule::Collective::send_recv;
  BenchResult r{.collective = c,
                .op = s.op.word,
                .ranks = static_cast<ccl::Rank>(calls.size()),
                .bytes = larger_buffer_bytes(calls),
                .count = call.count,
                .type = call.type,
                .reduction = call.op.kind,
                .root = root ? call.operation.root : -1,
                .in_place = in_place,
                .streams = s.streams};
  for (ccl::Rank rank = 0; rank < r.ranks; ++rank) {
    const ccl::BufferBytes e = ccl::extents_of(calls[static_cast<std::size_t>(rank)], rank, r.ranks);
    r.input_bytes += e.input, r.output_bytes += e.output;
  }
  return r;
}

double BenchResult::algbw_GBps(double us) const {
  return us > 0 ? static_cast<double>(bytes) * streams / us * 1e-3 : 0;
}

double BenchResult::busbw_GBps(double us) const { return algbw_GBps(us) * bus_factor(collective, ranks); }

std::string bench_heading(const BenchSettings& s, const std::vector<std::string>& ranks) {
  return s.style == BenchStyle::nccl ? nccl_heading(s, ranks) : nccom_line(nccom_columns(s, nullptr), true);
}

std::string bench_row(const BenchSettings& s, const BenchResult* out, const BenchResult* in) {
  const BenchResult* const any = out != nullptr ? out : in;
  if (any == nullptr) return "";
  if (s.style == BenchStyle::nccl) return nccl_row(s, *any, out, in);
  std::string text;
  for (const BenchResult* r : {out, in})
    if (r != nullptr) text += nccom_line(nccom_columns(s, r), false);
  return text;
}

std::string bench_footer(const BenchSettings& s, const BenchTotals& t) {
  std::string reasons;
  for (const std::string& why : t.not_native)
    reasons += fmt::format("{}Not native: {}\n", s.style == BenchStyle::nccl ? "# " : "", why);
  if (s.style == BenchStyle::nccom) return fmt::format("{}Avg bus bandwidth:\t{}GB/s\n", reasons, average_text(t));
  const std::string wrong = fmt::format("{} {}", t.wrong, t.wrong == 0 ? "OK" : "FAILED");
  // With -c 0 nccl-tests prints 0 OK here, although its rows say N/A. Unchecked results are not reported as OK here.
  std::string text = reasons + fmt::format("# Out of bounds values : {}\n", t.checked == 0 ? "N/A" : wrong);
  text += fmt::format("# Avg bus bandwidth    : {}\n", average_text(t));
  if (s.memory_report) text += fmt::format("# Memory of rank 0     : {}\n", bytes_text(t.memory_bytes));
  return text + fmt::format("#\n# Collective test concluded: {}\n", s.op.word);
}

}  // namespace trellis::tools
