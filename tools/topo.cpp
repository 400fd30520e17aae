#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "tools/command.h"
#include "tools/output.h"
#include "tools/topo_views.h"

namespace trellis::tools {
namespace {

constexpr int most_ranks = 1 << 20;

struct Options {
  std::string machine = "host", output;
  std::optional<int> ranks;
  bool equal = false, json = false;
};

void add_machine(CLI::App& app, Options& o) {
  app.add_option("machine", o.machine, "host: the machine that this runs on")->capture_default_str();
  app.add_option("-n,--ranks", o.ranks, "Shows where so many ranks would be kept");
  app.add_flag("--equal", o.equal, "All cores in equal parts, as trellis launch gives them, and not a core each");
}

void add_show(CLI::App& app, Options& o) {
  app.description(
      "Shows packages, NUMA nodes, caches, cores and hardware threads within each other, and where ranks go.\n\n"
      "Ranks get cores in this order: those of the smallest part of the machine that has enough, one L3 if that will\n"
      "do, and neighbours side by side. trellis bench and trellis launch --pin keep each rank on one; trellis launch\n"
      "alone gives each an equal part of all cores (--equal). Where ranks are more than cores, none is kept anywhere.\n"
      "Cores and caches are counted from 0; threads and NUMA nodes have the numbers of taskset and numactl.");
  add_machine(app, o);
  app.add_flag("--json", o.json, "Print JSON, sizes in bytes");
}

void add_draw(CLI::App& app, Options& o) {
  add_machine(app, o);
  app.add_option("-o,--output", o.output, "Write the SVG here [standard output]");
}

PlacedRanks placed_on(const TopoMachine& machine, const Options& o) {
  if (o.ranks && (*o.ranks < 1 || *o.ranks > most_ranks))
    throw std::invalid_argument(fmt::format("-n {}: expected 1 to {}", *o.ranks, most_ranks));
  if (o.equal && !o.ranks) throw std::invalid_argument("--equal needs -n, the number of ranks");
  PlacedRanks placed{.ranks = o.ranks.value_or(0), .share = o.equal ? Share::equal : Share::one};
  if (o.ranks) placed.threads = rank_threads(machine, *o.ranks, placed.share);
  return placed;
}

int show(const Options& o) {
  const TopoMachine machine = machine_named(o.machine);
  const PlacedRanks placed = placed_on(machine, o);
  write_output("", o.json ? topo_json(machine, placed) : topo_text(machine, placed));
  return 0;
}

int draw(const Options& o) {
  const TopoMachine machine = machine_named(o.machine);
  write_output(o.output, topo_picture(machine, placed_on(machine, o)));
  return 0;
}

const Registered group({.path = "topo",
                        .summary = "Machines: their memory, caches and cores, and where ranks go",
                        .examples = "trellis topo show -n 4\ntrellis topo draw -n 4 -o host.svg"});
const Registered show_command(command("topo show", "Shows a machine, and where ranks go on it",
                                      "trellis topo show\n"
                                      "trellis topo show host -n 4 --json\n"
                                      "HWLOC_SYNTHETIC='pack:2 l3:4 core:8 pu:2' trellis topo show -n 6",
                                      add_show, show));
const Registered draw_command(command("topo draw", "Draws a machine, and where ranks go on it, as SVG",
                                      "trellis topo draw -n 4 -o host.svg\n"
                                      "trellis topo draw host -n 2 --equal > host.svg",
                                      add_draw, draw));

}  // namespace
}  // namespace trellis::tools
