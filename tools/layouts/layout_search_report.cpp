#include "tools/layouts/layout_search_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "sim/hardware/timeline/format_quantities.h"
#include "tools/program/json_text.h"
#include "tools/program/table.h"

namespace trellis::tools {
namespace {

using Layouts = std::vector<const PricedLayout*>;

constexpr double shown = 0.001;  // fraction of a step's time: smaller differences are not shown

// People read parts and costs in words, programs as numbers.
enum class Reader : std::uint8_t { person, program };

Cell dollars(std::optional<double> cost, Reader reader) {
  if (!cost) return std::string("-");
  return reader == Reader::person ? Cell(fmt::format("${:.4g}", *cost)) : Cell(*cost);
}

Table table_of(const std::string& name, const Layouts& layouts, const SearchedMachine& m, Reader reader) {
  const bool words = reader == Reader::person;
  std::vector<Column> columns{left("layout"),  {"step", "s"}, {words ? "MFU" : "mfu"}, {"exposed"}, {"idle"},
                              {"memory", "B"}, {"fits"},      {"bound", "s"}};
  if (m.price) columns.push_back({words ? "cost" : "cost dollars"});
  Table table(name, std::move(columns));
  const auto part = [&](double of_one) { return words ? Cell(fmt::format("{:.1f}%", 100 * of_one)) : Cell(of_one); };
  for (const PricedLayout* l : layouts) {
    std::vector<Cell> row{words_of(l->layout),
                          sim::in_seconds(l->time),
                          part(l->mfu),
                          part(l->exposed()),
                          part(l->idle()),
                          l->memory,
                          l->fits,
                          sim::in_seconds(l->bound)};
    if (const auto cost = m.cost(l->time)) row.push_back(dollars(*cost, reader));
    table.add(std::move(row));
  }
  return table;
}

// The best layout of each machine.
Table machines_table(const std::vector<SearchedMachine>& all, Reader reader) {
  const bool words = reader == Reader::person;
  std::vector<Column> columns{left("machine"),
                              left("best layout"),
                              {"step", "s"},
                              {words ? "tokens/s" : "tokens per second"},
                              {words ? "a step" : "step dollars"},
                              {words ? "a million tokens" : "million tokens dollars"},
                              {"front"}};
  Table table("best", std::move(columns));
  for (const SearchedMachine& m : all) {
    const PricedLayout* const best = m.search.best();
    if (best == nullptr) continue;
    const auto tokens = static_cast<double>(m.config.global_batch_size * m.config.seq_length);
    const auto cost = m.cost(best->time);
    const bool beaten = std::ranges::any_of(all, [&](const SearchedMachine& other) {
      const PricedLayout* const theirs = other.search.best();
      if (theirs == nullptr || &other == &m) return false;
      const auto their_cost = other.cost(theirs->time);
      return theirs->time <= best->time && their_cost <= cost && (theirs->time < best->time || their_cost < cost);
    });
    const double rate = tokens / sim::in_seconds(best->time);
    table.add({m.name, words_of(best->layout), sim::in_seconds(best->time),
               words ? Cell(fmt::format("{:.4g}", rate)) : Cell(rate), dollars(cost, reader),
               dollars(cost ? std::optional(*cost / tokens * 1e6) : std::nullopt, reader), !beaten});
  }
  return table;
}

// The report of a search in which no layout is possible, or none fits.
std::string least_of(const LayoutSearchResult& search) {
  if (!search.refusal.empty()) return fmt::format("  best           no layout is possible: {}\n", search.refusal);
  if (search.stopped && search.priced + search.too_large == 0)
    return "  best           not known: no layout was priced before the search was stopped\n";
  const auto least = std::ranges::min_element(search.layouts, {}, &PricedLayout::memory);
  std::string out = fmt::format("  best           none{} fits into {} a rank",
                                search.stopped ? " of those looked at" : "", sim::bytes_words(search.memory_of_rank));
  if (least != search.layouts.end() && least->memory > 0)
    out += fmt::format("; the smallest, {}, needs {}", words_of(least->layout), sim::bytes_words(least->memory));
  return out + "\n";
}

// The runner-up's time against the winner's, part by part, the largest first.
std::string why_words(const PricedLayout& best, const PricedLayout& next) {
  std::map<std::string, double> more;
  for (const auto& [what, part] : next.parts) more[what] += part * static_cast<double>(next.time);
  for (const auto& [what, part] : best.parts) more[what] -= part * static_cast<double>(best.time);
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [what, time] : more)
    if (std::abs(time) > shown * static_cast<double>(best.time)) sorted.emplace_back(time, what);
  std::ranges::sort(sorted, [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  std::vector<std::string> words;
  for (const auto& [time, what] : sorted)
    words.push_back(fmt::format("{} {} {}", sim::time_words(static_cast<sim::Time>(std::abs(time))),
                                time > 0 ? "more" : "less", what));
  return words.empty() ? "no part of it differs" : fmt::format("{}", fmt::join(words, ", "));
}

std::string winner_text(const SearchedMachine& m, const PricedLayout& best) {
  std::string out;
  const auto next = std::ranges::find_if(m.search.layouts,
                                         [&](const PricedLayout& l) { return &l != &best && l.time > 0 && l.fits; });
  if (next != m.search.layouts.end())
    out += fmt::format("  why            the next, {}, takes {:.1f}% longer: {}\n", words_of(next->layout),
                       100 * (static_cast<double>(next->time) / static_cast<double>(best.time) - 1),
                       why_words(best, *next));
  const auto within = std::ranges::count_if(m.search.layouts, [&](const PricedLayout& l) {
    return l.time > 0 && l.fits && static_cast<double>(l.time) <= m.search.spread * static_cast<double>(best.time);
  });
  out += fmt::format(
      "  interval       a step is known to x/÷ {:.3g}: {} other priced layouts are within it; errors that\n"
      "                 all share leave the order as it is\n",
      m.search.spread, within - 1);
  out += m.reversals.empty()
             ? "                 it stays the fastest of them at both ends of step.exposed and step.hosts\n"
             : fmt::format("                 another is faster where {}\n", fmt::join(m.reversals, "; "));
  return out;
}

Layouts first_of(const LayoutSearchResult& search, std::size_t most) {
  Layouts first;
  for (const PricedLayout& l : search.layouts)
    if (l.time > 0 && first.size() < most) first.push_back(&l);
  return first;
}

}  // namespace

std::optional<double> SearchedMachine::cost(sim::Time time) const {
  if (!price) return {};
  return *price * hosts * sim::in_seconds(time) / 3600;
}

std::string search_text(const SearchedMachine& m, std::size_t most) {
  const LayoutSearchResult& s = m.search;
  std::string out = fmt::format("{} on {}, {} sequences a step: {} layouts, {} too large, {} priced{}{}\n",
                                m.config.name, m.name, m.config.global_batch_size, s.layouts.size(), s.too_large,
                                s.priced, s.resumed > 0 ? fmt::format(" ({} before)", s.resumed) : "",
                                s.stopped ? "; stopped before all were looked at" : ", the others ruled out");
  const PricedLayout* const best = s.best();
  if (best == nullptr) {
    out += least_of(s);
  } else {
    out += fmt::format("  best           {}: {}, {} of {} a rank\n", words_of(best->layout),
                       sim::time_words(best->time), sim::bytes_words(best->memory), sim::bytes_words(s.memory_of_rank));
    out += winner_text(m, *best);
  }
  return out + "\n" + table_of("layouts", first_of(s, most), m, Reader::person).text() +
         "\nno other is faster in less memory:\n" + table_of("front", s.front(), m, Reader::person).text();
}

std::string search_json(const std::vector<SearchedMachine>& all, std::size_t most) {
  const auto object = [&](const SearchedMachine& m) {
    const LayoutSearchResult& s = m.search;
    nlohmann::ordered_json out{{"machine", m.name},
                               {"layouts_possible", s.layouts.size()},
                               {"too_large", s.too_large},
                               {"priced", s.priced},
                               {"resumed", s.resumed},
                               {"stopped", s.stopped},
                               {"memory_of_rank_bytes", s.memory_of_rank},
                               {"spread", s.spread},
                               {"reversals", m.reversals}};
    out["layouts"] = table_of("layouts", first_of(s, most), m, Reader::program).object()["layouts"];
    out["front"] = table_of("front", s.front(), m, Reader::program).object()["front"];
    if (!s.refusal.empty()) out["none_possible"] = s.refusal;
    if (const PricedLayout* best = s.best(); best != nullptr && m.price) out["cost_of_step"] = *m.cost(best->time);
    return out;
  };
  if (all.size() == 1) return json_text(object(all[0]), 1);
  nlohmann::ordered_json out;
  for (const SearchedMachine& m : all) out["machines"].push_back(object(m));
  out.update(machines_table(all, Reader::program).object());
  return json_text(out, 1);
}

std::string machines_text(const std::vector<SearchedMachine>& all) {
  return machines_table(all, Reader::person).text();
}

}  // namespace trellis::tools
