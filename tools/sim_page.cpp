// The top of a report on a collective: what needs no script and is read first.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "sim/price_path.h"
#include "sim/report_parts.h"
#include "sim/summary_words.h"
#include "sim/text_buffer.h"
#include "tools/machine_tune_chart.h"
#include "tools/request_options.h"
#include "tools/sim_answer.h"
#include "tools/topo_sim.h"

namespace trellis::tools {
namespace {

using namespace sim;

constexpr std::string_view style = R"css(<style>
.answer { max-width: 900px; } .answer table { width: 100%; } .answer td.wide { width: 45%; position: relative; }
.answer .place { position: relative; height: 12px; background: var(--panel); border-radius: 3px; }
.answer .place i { position: absolute; top: 0; height: 12px; border-radius: 3px; min-width: 1px; }
.answer i.result { background: var(--busy); } .answer i.bound { background: var(--idle); }
.answer i.range { background: var(--stalled); opacity: .45; }
.answer th { color: var(--faint); font-weight: normal; border-bottom: 1px solid var(--line); }
.answer p { margin: 4px 0; } .answer .lead { font-size: 16px; }
.picture svg { width: auto; max-width: 100%; height: auto; } .notes { color: var(--faint); }
</style>
)css";

class Page {
 public:
  Page(const SimAnswer& a, const Machine& machine) : a_(a), machine_(machine) {
    whole_ = static_cast<double>(std::max({a.interval.high, a.price.time, a.price.bounds.most(), Time{1}}));
  }

  std::string html(const Run& run) {
    put(text_, "{}", style);
    put_result();
    put_path();
    put_phases();
    put_sways();
    put_picture(run);
    for (const std::string& note : a_.notes) put(text_, "<p class='notes'>{}</p>\n", escaped_html(note));
    put(text_, "<h2>Timeline</h2>\n");
    return fmt::to_string(text_);
  }

 private:
  // A bar over the time from 0 to the longest that is shown.
  std::string bar(Time from, Time to, std::string_view css) const {
    return fmt::format("<i class='{}' style='left:{:.2f}%;width:{:.2f}%'></i>", css,
                       100 * static_cast<double>(from) / whole_, 100 * static_cast<double>(to - from) / whole_);
  }

  void put_row(std::string_view what, const std::string& value, const std::string& bars, std::string_view more = "") {
    put(text_,
        "<tr><td>{}</td><td class='n'>{}</td><td class='wide'><div class='place'>{}</div></td><td>{}</td></tr>\n", what,
        value, bars, escaped_html(more));
  }

  void put_result() {
    const Price& p = a_.price;
    const auto& request = a_.chosen.request;
    put(text_,
        "<section class='answer'><h2>Result</h2>\n<p class='lead'>{} by {} ({}, {} channels): {:.2f} GB/s, bus {:.2f} "
        "GB/s</p>\n<table id='result'>\n",
        sim_time_text(p.time), escaped_html(a_.chosen.algorithm->name), shape_text(request.dims), request.channels,
        p.algbw * 1e-9, p.busbw * 1e-9);
    put_row("simulated", sim_time_text(p.time),
            bar(0, p.time, "result") + bar(a_.interval.low, a_.interval.high, "range"),
            fmt::format("between {} and {} by figures that are not documented", sim_time_text(a_.interval.low),
                        sim_time_text(a_.interval.high)));
    const auto bound = [&](std::string_view what, Time time, std::string_view more) {
      put_row(what, time > 0 ? sim_time_text(time) : "none", bar(0, time, "bound"), more);
    };
    bound("bound by latency", p.bounds.latency, "the launch and one transfer between the farthest ranks");
    bound("bound by bandwidth", p.bounds.bandwidth, "what each chip must send, over all its ways out");
    bound("bound by bisection", p.bounds.bisection, "what must cross between the machine's halves");
    put(text_, "</table>\n");
    const auto& others = a_.choice.others;
    for (const Cost& other : std::span(others).first(std::min(most_compared, others.size())))
      put(text_, "<p>rather than at least {} by {}</p>\n", sim_time_text(other.time), escaped_html(text_of(other.way)));
    if (!a_.interrupted.empty()) put(text_, "<p>interrupted: {}</p>\n", escaped_html(a_.interrupted));
    put(text_, "</section>\n");
  }

  void put_path() {
    const auto shares = path_shares(a_.price, machine_);
    if (shares.empty()) return;
    put(text_,
        "<section class='answer'><h2>Where the time goes</h2>\n<p class='lead'>{} of the time: {}</p>\n<table>\n",
        share_words(shares.front().time, a_.price.time), escaped_html(shares.front().words));
    for (const PathShare& s : shares)
      put(text_,
          "<tr><td class='n'>{0}</td><td class='bar'><i class='busy' style='width:{0}'></i></td>"
          "<td class='n'>{1}</td><td>{2}</td></tr>\n",
          share_words(s.time, a_.price.time), sim_time_text(s.time), escaped_html(s.words));
    put(text_, "</table>\n");
    if (!a_.price.busiest_name.empty())
      put(text_, "<p>busiest: {}, {:.0f}% of the time</p>\n", escaped_html(a_.price.busiest_name),
          100 * a_.price.busiest_share);
    put(text_, "</section>\n");
  }

  void put_phases() {
    if (a_.phases.empty()) return;
    put(text_,
        "<section class='answer'><h2>Phases</h2>\n<p class='notes'>Transfers that do the same over the same links, "
        "from "
        "the first one's start to the last one's arrival. Phases of several channels overlap.</p>\n"
        "<table id='phases'><tr><th>phase</th><th>takes</th><th>from start to end</th><th>on the critical path</th>"
        "<th>transfers</th></tr>\n");
    for (const Phase& p : a_.phases)
      put(text_,
          "<tr><td>{}</td><td class='n'>{}</td><td class='wide'><div class='place' title='{} to {}'>{}</div></td>"
          "<td class='n'>{}</td><td class='n'>{}</td></tr>\n",
          escaped_html(p.name), sim_time_text(p.to - p.from), sim_time_text(p.from), sim_time_text(p.to),
          bar(p.from, p.to, "result"), share_words(p.on_path, a_.price.time), p.transfers);
    put(text_, "</table></section>\n");
  }

  void put_sways() {
    constexpr std::size_t most = 6;
    if (a_.interval.sways.empty()) return;
    put(text_, "<section class='answer'><h2>What the answer hangs on</h2>\n<table>\n");
    for (std::size_t i = 0; i < std::min(most, a_.interval.sways.size()); ++i) {
      const Sway& s = a_.interval.sways[i];
      put_row(escaped_html(s.figure), fmt::format("{} to {}", sim_time_text(s.low), sim_time_text(s.high)),
              bar(s.low, s.high, "range"), fmt::format("where it is {} to {}", s.low_text, s.high_text));
    }
    put(text_, "</table></section>\n");
  }

  void put_picture(const Run& run) {
    const double seconds = in_seconds(a_.price.time);
    const Use use = [&](ResourceId r) {
      const double rate = machine_.rate(r);
      return rate > 0 && seconds > 0 ? run.carried(r) / rate / seconds : 0.0;
    };
    put(text_,
        "<section><h2>The machine, and how much of each link was used</h2>\n<div class='picture'>{}</div></section>\n",
        sim_topo_picture(machine_, use));
  }

  const SimAnswer& a_;
  const Machine& machine_;
  double whole_ = 1;
  Text text_;
};

}  // namespace

std::string sim_page(const SimAnswer& a, const Machine& machine, const Run& run) { return Page(a, machine).html(run); }

}  // namespace trellis::tools
