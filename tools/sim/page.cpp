// The top of a report on a collective: readable without scripts.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "sim/cluster/price/critical_path.h"
#include "sim/hardware/report/html_parts.h"
#include "sim/hardware/timeline/format_quantities.h"
#include "sim/hardware/timeline/text_buffer.h"
#include "tools/answer/asked_machine.h"
#include "tools/answer/crossover_chart.h"
#include "tools/answer/page.h"
#include "tools/sim/sim_report.h"
#include "tools/topo/machine_renderings.h"

namespace trellis::tools {
namespace {

using namespace sim;

class Page {
 public:
  Page(const SimReport& report, const Machine& machine)
      : report_(report),
        machine_(machine),
        page_(std::max({a_.interval.high, a_.price.time, a_.price.bounds.most(), a_.noisy.most()})) {}

  std::string html() {
    put_result();
    const Price& p = a_.price;
    page_.put_shares(
        path_shares(p, machine_), p.time,
        p.busiest_name.empty() ? "" : fmt::format("{}, {:.0f}% of the time", p.busiest_name, 100 * p.busiest_share));
    put_phases();
    page_.put_sensitivities(a_.interval);
    put_picture();
    for (const std::string& note : report_.notes) put(text_, "<p class='notes'>{}</p>\n", escaped_html(note));
    put(text_, "<h2>Timeline</h2>\n");
    return page_.html();
  }

 private:
  void put_result() {
    const Price& p = a_.price;
    put(text_,
        "<section class='answer'><h2>Result</h2>\n<p class='lead'>{} by {}: {:.2f} GB/s, bus {:.2f} GB/s</p>\n"
        "<table id='result'>\n",
        sim_time_text(p.time), escaped_html(config_words(a_.config)), p.algbw * 1e-9, p.busbw * 1e-9);
    page_.put_result_row(p.time, a_.interval);
    page_.put_noise(a_.noisy);
    const auto bound = [&](std::string_view what, Time time, std::string_view more) {
      page_.put_row(what, time > 0 ? sim_time_text(time) : "none", page_.bar(0, time, "bound"), more);
    };
    bound("bound by latency", p.bounds.latency, "the launch and one transfer between the farthest ranks");
    bound("bound by bandwidth", p.bounds.bandwidth, "what each chip must send, over all its ways out");
    bound("bound by bisection", p.bounds.bisection, "what must cross between the machine's halves");
    bound("bound by memory", p.bounds.memory, "what a chip's ranks must read and write of its HBM");
    put(text_, "</table>\n");
    if (const std::string words = launch_words(a_); !words.empty())
      put(text_, "<p>launched {}</p>\n", escaped_html(words));
    if (const std::string words = rests_on(machine_.spec()); !words.empty())
      put(text_, "<p>rests on {}</p>\n", escaped_html(words));
    if (!a_.draws.empty())
      put(text_, "<p>a draw with {}: their intervals overlap</p>\n", escaped_html(draw_words(a_.draws)));
    const auto& others = a_.choice.others;
    for (const ConfigCost& other : std::span(others).first(std::min(most_compared, others.size())))
      put(text_, "<p>runner-up: at least {} by {}</p>\n", sim_time_text(other.time),
          escaped_html(text_of(other.config)));
    for (const std::string& words : left_out_words(a_.choice)) put(text_, "<p>left out: {}</p>\n", escaped_html(words));
    if (!a_.interrupted.empty()) put(text_, "<p>interrupted: {}</p>\n", escaped_html(a_.interrupted));
    put(text_, "</section>\n");
  }

  void put_phases() {
    if (a_.phases.empty()) return;
    put(text_,
        "<section class='answer'><h2>Phases</h2>\n<p class='notes'>Transfers that do the same over the same links, "
        "from "
        "the first one's start to the last one's arrival. Phases of several channels overlap.</p>\n"
        "<table id='phases'><tr><th>phase</th><th>takes</th><th>from start to end</th><th>on the critical path</th>"
        "<th>transfers{}</th></tr>\n",
        a_.price.simulated < report_.ranks
            ? fmt::format(" <small>of {} of {} ranks</small>", a_.price.simulated, report_.ranks)
            : "");
    for (const CollectivePhase& p : a_.phases)
      put(text_,
          "<tr><td>{}</td><td class='n'>{}</td><td class='wide'><div class='place' title='{} to {}'>{}</div></td>"
          "<td class='n'>{}</td><td class='n'>{}</td></tr>\n",
          escaped_html(p.name), sim_time_text(p.to - p.from), sim_time_text(p.from), sim_time_text(p.to),
          page_.bar(p.from, p.to, "result"), share_words(p.on_path, a_.price.time), p.transfers);
    put(text_, "</table></section>\n");
  }

  void put_picture() {
    const double seconds = in_seconds(a_.price.time);
    const Use use = [&](ResourceId r) {
      const double rate = machine_.rate(r);
      return rate > 0 && seconds > 0 ? a_.carried[r] / rate / seconds : 0.0;
    };
    put(text_,
        "<section><h2>The machine, and how much of each link was used</h2>\n<div class='picture'>{}</div></section>\n",
        sim_topo_picture(machine_, use));
  }

  const SimReport& report_;
  const CollectiveAnswer& a_ = report_.answer;
  const Machine& machine_;
  AnswerPage page_;
  Text& text_ = page_.text();
};

}  // namespace

std::string sim_page(const SimReport& report, const Machine& machine) { return Page(report, machine).html(); }

}  // namespace trellis::tools
