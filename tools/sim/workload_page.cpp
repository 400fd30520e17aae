#include "tools/sim/workload_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/hardware/report/html_parts.h"
#include "sim/hardware/timeline/format_quantities.h"
#include "tools/answer/page.h"

namespace trellis::tools {
namespace {

using namespace sim;

// Tasks of the critical path by name, largest part first.
std::vector<CriticalPathShare> path_of(const Workload& workload, const PlayResult& played) {
  std::map<std::string, CriticalPathShare> by_name;
  for (const std::uint32_t i : played.path) {
    const WorkloadTask& part = workload.parts[i];
    CriticalPathShare& share = by_name[part.task->name];
    share.time += played.parts[i].end - played.parts[i].start;
    if (part.computes)
      share.words = fmt::format("{}, computed", part.task->name);
    else
      share.words = fmt::format("{}, {} by {}", part.task->name, text(workload, part), played.parts[i].algorithm);
  }
  std::vector<CriticalPathShare> shares;
  for (auto& [name, share] : by_name) shares.push_back(std::move(share));
  std::ranges::stable_sort(shares, std::greater<>(), &CriticalPathShare::time);
  constexpr std::size_t most = 20;
  if (shares.size() > most) shares.resize(most);
  return shares;
}

// What a rank does, averaged over all ranks.
struct Busy {
  double compute = 0, hidden = 0, exposed = 0, idle = 0;  // picoseconds
};

Busy busy(const Workload& workload, const PlayResult& played) {
  Busy mean;
  for (std::size_t i = 0; i < played.cells.size(); ++i) {
    const PlayedTimeBreakdown& c = played.cells[i];
    const double share =
        static_cast<double>(workload.cells[i].ranks.size()) / static_cast<double>(workload.graph->ranks);
    mean.compute += share * static_cast<double>(c.compute);
    mean.hidden += share * static_cast<double>(c.comm - c.exposed);
    mean.exposed += share * static_cast<double>(c.exposed);
    mean.idle += share * static_cast<double>(c.idle);
  }
  return mean;
}

}  // namespace

std::string play_page(const WorkloadReport& report) {
  const Workload& workload = report.workload;
  const WorkloadAnswer& a = report.answer;
  const PlayResult& played = a.played;
  AnswerPage page(std::max({a.interval.high, played.time, a.noisy.most()}));
  put(page.text(),
      "<section class='answer'><h2>Result</h2>\n<p class='lead'>{} for {} on {}</p>\n<table id='result'>\n",
      time_words(played.time), escaped_html(workload.graph->name), escaped_html(report.machine.title()));
  page.put_result_row(played.time, a.interval);
  page.put_noise(a.noisy);
  const Busy mean = busy(workload, played);
  const auto row = [&](std::string_view what, double time, std::string_view more) {
    const auto rounded = static_cast<Time>(time);
    page.put_row(what, time_words(rounded), page.bar(0, rounded, "bound"),
                 fmt::format("{} of the time{}", share_words(rounded, played.time), more));
  };
  row("a rank computes", mean.compute, ", in the mean over ranks");
  row("communicates behind it", mean.hidden, "");
  row("communicates, and nothing hides it", mean.exposed,
      fmt::format("; {} where it is most", time_words(played.exposed_most)));
  row("waits", mean.idle, "");
  put(page.text(), "</table></section>\n");
  page.put_shares(path_of(workload, played), played.time);
  page.put_sensitivities(a.interval);
  put(page.text(), "<h2>Timeline</h2>\n");
  return page.html();
}

}  // namespace trellis::tools
