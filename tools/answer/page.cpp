#include "tools/answer/page.h"

#include <algorithm>

#include "sim/hardware/report/html_parts.h"
#include "sim/hardware/timeline/format_quantities.h"
#include "tools/answer/crossover_chart.h"

namespace trellis::tools {
namespace {

using namespace sim;

constexpr std::string_view style = R"css(<style>
.answer table { width: 100%; } .answer td.wide { width: 45%; position: relative; }
.answer .place { position: relative; height: 12px; background: var(--panel); border-radius: 3px; }
.answer .place i { position: absolute; top: 0; height: 12px; border-radius: 3px; min-width: 1px; }
.answer i.result { background: var(--busy); } .answer i.bound { background: var(--idle); }
.answer i.range { background: var(--stalled); opacity: .45; }
.answer th { color: var(--faint); font-weight: normal; border-bottom: 1px solid var(--line); }
.answer p { margin: 4px 0; } .answer .lead { font-size: 16px; }
.picture svg { width: auto; max-width: 100%; height: auto; } .notes { color: var(--faint); }
@media (max-width: 600px) { .answer td.wide { width: 20%; } .answer td.n { white-space: normal; } }
</style>
)css";

}  // namespace

std::string AnswerPage::html() const { return std::string(style) + fmt::to_string(text_); }

std::string AnswerPage::bar(Time from, Time to, std::string_view css) const {
  return fmt::format("<i class='{}' style='left:{:.2f}%;width:{:.2f}%'></i>", css,
                     100 * static_cast<double>(from) / whole_, 100 * static_cast<double>(to - from) / whole_);
}

void AnswerPage::put_row(std::string_view what, const std::string& value, const std::string& bars,
                         std::string_view more) {
  put(text_, "<tr><td>{}</td><td class='n'>{}</td><td class='wide'><div class='place'>{}</div></td><td>{}</td></tr>\n",
      what, value, bars, escaped_html(more));
}

void AnswerPage::put_result_row(Time time, const UncertaintyInterval& interval) {
  const bool known = interval.high > 0;
  put_row("simulated", sim_time_text(time),
          bar(0, time, "result") + (known ? bar(interval.low, interval.high, "range") : ""),
          known ? fmt::format("between {} and {} by figures that are not documented", sim_time_text(interval.low),
                              sim_time_text(interval.high))
                : "");
}

void AnswerPage::put_noise(const NoisyTimes& noisy) {
  if (noisy.times.empty()) return;
  put_row("with noise", sim_time_text(quantile(noisy, 0.5)), bar(noisy.times.front(), noisy.most(), "range"),
          noise_words(noisy));
}

void AnswerPage::put_shares(const std::vector<CriticalPathShare>& shares, Time whole, std::string_view busiest) {
  if (shares.empty()) return;
  put(text_, "<section class='answer'><h2>Where the time goes</h2>\n<p class='lead'>{} of the time: {}</p>\n<table>\n",
      share_words(shares.front().time, whole), escaped_html(shares.front().words));
  for (const CriticalPathShare& s : shares)
    put(text_,
        "<tr><td class='n'>{0}</td><td class='bar'><i class='busy' style='width:{0}'></i></td>"
        "<td class='n'>{1}</td><td>{2}</td></tr>\n",
        share_words(s.time, whole), sim_time_text(s.time), escaped_html(s.words));
  put(text_, "</table>\n");
  if (!busiest.empty()) put(text_, "<p>busiest: {}</p>\n", escaped_html(busiest));
  put(text_, "</section>\n");
}

void AnswerPage::put_sensitivities(const UncertaintyInterval& interval) {
  constexpr std::size_t most = 6;
  if (interval.sensitivities.empty()) return;
  put(text_, "<section class='answer'><h2>What the answer is sensitive to</h2>\n<table>\n");
  for (std::size_t i = 0; i < std::min(most, interval.sensitivities.size()); ++i) {
    const Sensitivity& s = interval.sensitivities[i];
    put_row(escaped_html(s.figure), fmt::format("{} to {}", sim_time_text(s.low), sim_time_text(s.high)),
            bar(s.low, s.high, "range"), fmt::format("where it is {} to {}", s.low_text, s.high_text));
  }
  put(text_, "</table></section>\n");
}

}  // namespace trellis::tools
