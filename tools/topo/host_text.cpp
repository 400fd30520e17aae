#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "measure/bench_names.h"
#include "tools/program/json_text.h"
#include "tools/topo/host_views.h"

namespace trellis::tools {

using namespace launch;
using namespace measure;
namespace {

using Kind = TopoObject::Kind;

std::string_view kind_word(Kind kind) {
  constexpr std::string_view words[] = {"machine", "package", "die", "group", "NUMA node", "cache", "core", "thread"};
  return words[static_cast<std::size_t>(kind)];
}

struct Line {
  std::string text, ranks;
};

// A core with its own caches: one line, or part of a line of similar cores.
struct CoreWords {
  std::vector<int> cores, usable, others;
  std::string caches;
  int rank = -1;

  bool like(const CoreWords& o) const {
    return rank == o.rank && caches == o.caches && others.empty() == o.others.empty();
  }
  void join(const CoreWords& o) {
    for (const auto& [to, from] : {std::pair(&cores, &o.cores), {&usable, &o.usable}, {&others, &o.others}})
      to->insert(to->end(), from->begin(), from->end());
  }
  Line line(int indent) const {
    const auto named = [](const char* what, const std::vector<int>& numbers) {
      return fmt::format("{}{} {}", what, numbers.size() == 1 ? "" : "s", ranges(numbers));
    };
    std::string text = fmt::format("{:{}}{}:", "", indent, named("core", cores));
    if (!usable.empty()) text += " " + named("thread", usable);
    if (!others.empty())
      text += fmt::format("{} {} not for this process", usable.empty() ? "" : ",", named("thread", others));
    if (!caches.empty()) text += (cores.size() == 1 ? "; " : "; each ") + caches;
    return {text, rank < 0 ? "" : fmt::format("rank {}", rank)};
  }
};

CoreWords core_words(const std::vector<const TopoObject*>& chain, const PlacedRanks& placed) {
  const TopoObject& core = *chain.back();
  CoreWords w{.cores = {core.number}, .usable = usable_threads(core), .rank = placed.rank_on(core)};
  for (const TopoObject& thread : core.parts)
    if (!thread.usable) w.others.push_back(thread.number);
  for (const TopoObject* p : chain)
    if (p != &core) w.caches += (w.caches.empty() ? "" : ", ") + words_for(*p);
  return w;
}

// Adds a line for everything inside an object; cores that are alike share one.
void add_lines(std::vector<Line>& lines, const TopoObject& p, int indent, const PlacedRanks& placed) {
  std::vector<CoreWords> alike;
  const auto flush = [&] {
    for (const CoreWords& w : alike) lines.push_back(w.line(indent));
    alike.clear();
  };
  for (const TopoObject& part : p.parts) {
    const std::vector<const TopoObject*> chain = chain_from(part);
    if (chain.back()->kind == Kind::core) {
      const CoreWords w = core_words(chain, placed);
      if (!alike.empty() && alike.back().like(w))
        alike.back().join(w);
      else
        alike.push_back(w);
      continue;
    }
    flush();
    std::string text(static_cast<std::size_t>(indent), ' ');
    for (const TopoObject* one : chain) text += (one == chain.front() ? "" : "; ") + words_for(*one);
    lines.push_back({text, ""});
    add_lines(lines, *chain.back(), indent + 2, placed);
  }
  flush();
}

using Counts = std::map<std::pair<Kind, int>, int>;  // by kind, and by level for caches

void count(const TopoObject& p, Counts& counts) {
  ++counts[{p.kind, p.level}];
  for (const TopoObject& part : p.parts) count(part, counts);
}

// "1 package, 1 NUMA node, 1 L3, 2 cores, 2 threads"
std::string summary(const TopoObject& whole) {
  Counts counts;
  count(whole, counts);
  int last_level = 0;
  for (const auto& [what, many] : counts) last_level = std::max(last_level, what.second);
  std::string text;
  for (const auto& [what, many] : counts) {
    const auto& [kind, level] = what;
    if (kind == Kind::machine || kind == Kind::group || (kind == Kind::cache && level != last_level)) continue;
    const std::string word = kind == Kind::cache ? fmt::format("L{}", level) : std::string(kind_word(kind));
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", many, word, many == 1 ? "" : "s");
  }
  const std::size_t usable = usable_threads(whole).size();
  if (usable < static_cast<std::size_t>(counts[{Kind::thread, 0}]))
    text += fmt::format("; {} of the threads are for this process", usable);
  return text;
}

using Json = nlohmann::ordered_json;

Json json_of(const TopoObject& p) {
  Json j;
  j["kind"] = p.kind == Kind::memory ? "numa" : kind_word(p.kind);
  if (p.kind != Kind::machine) j["number"] = p.number;
  if (p.kind == Kind::cache) j["level"] = p.level;
  if (p.kind == Kind::cache || p.kind == Kind::memory) j["bytes"] = p.bytes;
  if (p.kind == Kind::thread) j["usable"] = p.usable;
  for (const TopoObject& part : p.parts) j["parts"].push_back(json_of(part));
  return j;
}

// Adds the numbers of all objects of a kind (of caches, also of a level) in `p` that contain one of the threads.
void add_numbers(Json& numbers, const TopoObject& p, Kind kind, int level, const std::vector<int>& threads) {
  const std::vector<int> within = usable_threads(p);
  if (std::ranges::find_first_of(within, threads) == within.end()) return;
  if (p.kind == kind && p.level == level) numbers.push_back(p.number);
  for (const TopoObject& part : p.parts) add_numbers(numbers, part, kind, level, threads);
}

}  // namespace

std::string words_for(const TopoObject& p) {
  switch (p.kind) {
    case Kind::memory:
      return fmt::format("NUMA node {}{}", p.number, p.bytes == 0 ? "" : ", " + bytes_text(p.bytes));
    case Kind::cache:
      return fmt::format("L{}{}", p.level, p.bytes == 0 ? "" : " " + bytes_text(p.bytes));
    case Kind::machine:
      return "machine";
    default:
      return fmt::format("{} {}", kind_word(p.kind), p.number);
  }
}

std::vector<const TopoObject*> chain_from(const TopoObject& p) {
  std::vector<const TopoObject*> chain = {&p};
  while (chain.back()->kind != Kind::core && chain.back()->parts.size() == 1)
    chain.push_back(&chain.back()->parts.front());
  return chain;
}

int PlacedRanks::rank_on(const TopoObject& p) const {
  const std::vector<int> here = usable_threads(p);
  for (std::size_t r = 0; r < threads.size(); ++r)
    if (std::ranges::find_first_of(here, threads[r]) != here.end()) return static_cast<int>(r);
  return -1;
}

std::string PlacedRanks::sentence() const {
  const std::string who = fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
  if (threads.empty()) return who + ": more than there are cores; none is bound to one but by launch --pin";
  return who + (share == CoreAllocationPolicy::one ? ", on a core each" : ", on equal parts of the cores");
}

std::string topo_text(const TopoMachine& machine, const PlacedRanks& placed) {
  std::string text = fmt::format("{}: {}\n", machine.name, summary(machine.whole));
  if (placed.ranks != 0) text += placed.sentence() + "\n";
  std::vector<Line> lines;
  add_lines(lines, machine.whole, 0, placed);
  std::size_t width = 0;
  for (const Line& line : lines)
    if (!line.ranks.empty()) width = std::max(width, line.text.size());
  text += "\n";
  for (const Line& line : lines)
    text += line.ranks.empty() ? line.text + "\n" : fmt::format("{:{}}  {}\n", line.text, width, line.ranks);
  return text;
}

std::string topo_json(const TopoMachine& machine, const PlacedRanks& placed) {
  Json j;
  j["machine"] = machine.name;
  j["here"] = machine.here;
  j["whole"] = json_of(machine.whole);
  j["ranks"] = Json::array();
  for (std::size_t r = 0; r < placed.threads.size(); ++r) {
    Json rank = {{"rank", r}, {"threads", placed.threads[r]}};
    for (const auto& [key, kind, level] :
         {std::tuple("cores", Kind::core, 0), {"l3", Kind::cache, 3}, {"numa", Kind::memory, 0}}) {
      rank[key] = Json::array();
      add_numbers(rank[key], machine.whole, kind, level, placed.threads[r]);
    }
    j["ranks"].push_back(rank);
  }
  return json_text(j);
}

}  // namespace trellis::tools
