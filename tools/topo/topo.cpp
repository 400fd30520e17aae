#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "launch/launch_on_hosts.h"
#include "launch/remote_shell.h"
#include "sim/cluster/machine/import/machine_argument.h"
#include "text/nearest.h"
#include "text/refuse.h"
#include "tools/answer/asked_machine.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/topo/host_views.h"
#include "tools/topo/machine_renderings.h"

namespace trellis::tools {

using namespace launch;
namespace {

constexpr int most_ranks = 1 << 20;

struct Options {
  std::string machine = "host", output;
  std::vector<std::string> what_if, hosts;
  std::string shell = "ssh";
  const CLI::App* app = nullptr;
  std::optional<int> ranks;
  bool equal = false, json = false;
};

void add_machine(CLI::App& app, Options& o) {
  app.add_option("machine", o.machine, "host: the machine that this runs on; or a simulated one")
      ->capture_default_str();
  app.add_option("--what-if", o.what_if, std::string("Of a simulated one: ") + sim::change_grammar);
  app.add_option("-n,--ranks", o.ranks, "Show where N ranks would be kept");
  app.add_flag("--equal", o.equal,
               "Divide all cores equally among the ranks, as trellis launch does; without it, one core per rank");
}

void add_show(CLI::App& app, Options& o) {
  o.app = &app;
  app.description(fmt::format(
      "Shows a machine. Of a simulated one: its levels, each kind of link with rate and latency, the bisection, and "
      "the\n"
      "figures behind these with their marks and sources. Of this host: packages, NUMA nodes, caches, cores and\n"
      "hardware threads within each other, and where ranks go.\n\n"
      "Ranks get cores in this order: those of the smallest part of the machine that has enough, one L3 if that will\n"
      "do, and neighbours side by side. trellis bench and trellis launch --pin keep each rank on one; trellis launch\n"
      "alone gives each an equal part of all cores (--equal). Where ranks are more than cores, none is kept anywhere.\n"
      "Cores and caches are counted from 0; threads and NUMA nodes have the numbers of taskset and numactl.\n\n{}",
      sim::machine_grammar));
  add_machine(app, o);
  app.add_flag("--json", o.json, "Print JSON, sizes in bytes");
  app.add_option("--hosts", o.hosts, "Show these hosts instead: node0,node1")->delimiter(',');
  app.add_option("--rsh", o.shell, "Command that runs a program on another host")->capture_default_str();
}

void add_draw(CLI::App& app, Options& o) {
  app.description(fmt::format(
      "Draws a machine as SVG. A simulated one as an architect would: chips within their torus, hosts, network\n"
      "interfaces, switches; what repeats too often is drawn once, the rest as boxes. What each link is, its "
      "rate\nand its latency are shown on it.\n\n{}",
      sim::machine_grammar));
  add_machine(app, o);
  app.add_option("-o,--output", o.output, "Write the SVG here [standard output]")
      ->check(svg_file())
      ->check(output_file());
}

PlacedRanks placed_on(const TopoMachine& machine, const Options& o) {
  if (o.ranks && (*o.ranks < 1 || *o.ranks > most_ranks)) text::refuse("-n {}: expected 1 to {}", *o.ranks, most_ranks);
  if (o.equal && !o.ranks) throw std::invalid_argument("--equal needs -n, the number of ranks");
  PlacedRanks placed{.ranks = o.ranks.value_or(0),
                     .share = o.equal ? CoreAllocationPolicy::equal : CoreAllocationPolicy::one};
  if (o.ranks) placed.threads = rank_threads(machine, *o.ranks, placed.share);
  return placed;
}

TopoMachine host_named(const std::string& name) {
  if (name == "host") return host_machine();
  text::refuse("no machine is called '{}'; did you mean 'host'?", name);
}

// A word close to `host` is not taken for a machine: host_named reports that it is misspelt.
bool is_simulated(const Options& o) {
  if (o.machine == "host" || !text::nearest(o.machine, {"host"}).empty()) {
    if (!o.what_if.empty()) throw std::invalid_argument("--what-if goes with a simulated machine, and host is none");
    return false;
  }
  if (o.ranks || o.equal)
    text::refuse("{} goes with host: a simulated machine says itself where ranks are", o.ranks ? "-n" : "--equal");
  return true;
}

// Runs this command on other hosts and joins what it prints there: text, in which hosts with equal output are shown
// once, or one JSON object with a key for each host.
std::string shown_on_hosts(const Options& o) {
  std::string command = fmt::format("{} topo show host{}", shell_word(path_of_this_program()), o.json ? " --json" : "");
  if (o.ranks) command += fmt::format(" -n {}", *o.ranks);
  if (o.equal) command += " --equal";
  std::vector<std::pair<std::string, std::string>> said;  // by the hosts' names
  for (const HostSlots& h : hosts_in_list(fmt::format("{}", fmt::join(o.hosts, ",")))) {
    const std::string text = output_on_host(o.shell, h.host, command);
    const auto same = std::ranges::find(said, text, [](const auto& one) { return one.second; });
    if (same == said.end() || o.json)
      said.emplace_back(h.host, text);
    else
      same->first.append(", ").append(h.host);
  }
  if (o.json) {
    auto all = nlohmann::ordered_json::object();
    for (const auto& [host, text] : said) all[host] = nlohmann::ordered_json::parse(text);
    return all.dump(2) + "\n";
  }
  std::string all;
  for (const auto& [names, text] : said) all.append(all.empty() ? "" : "\n").append(names).append(":\n").append(text);
  return all;
}

int show(const Options& o) {
  if (!o.hosts.empty()) {
    if (o.machine != "host") text::refuse("--hosts does not go with {}", o.machine);
    is_simulated(o);               // refuses options for simulated machines
    placed_on(host_machine(), o);  // refuses wrong options for ranks before any host is asked
    write_output("", shown_on_hosts(o));
    return 0;
  }
  if (o.app->count("--rsh") != 0) text::refuse("--rsh {} goes with --hosts", o.shell);
  if (is_simulated(o)) {
    const sim::Machine machine(asked_machine(o.machine, o.what_if));
    write_output("", o.json ? sim_topo_json(machine) : sim_topo_text(machine));
    return 0;
  }
  const TopoMachine machine = host_named(o.machine);
  const PlacedRanks placed = placed_on(machine, o);
  write_output("", o.json ? topo_json(machine, placed) : topo_text(machine, placed));
  return 0;
}

int draw(const Options& o) {
  if (is_simulated(o)) {
    write_output(o.output, sim_topo_picture(sim::Machine(asked_machine(o.machine, o.what_if))));
    return 0;
  }
  const TopoMachine machine = host_named(o.machine);
  write_output(o.output, topo_picture(machine, placed_on(machine, o)));
  return 0;
}

const RegisteredCommand group({.path = "topo",
                               .summary = "Machines: this host and simulated ones, as text and as pictures",
                               .examples = "trellis topo show -n 4\ntrellis topo draw trn2.48xlarge -o trn2.svg"});
const RegisteredCommand show_command("topo show", "Shows a machine, and where ranks go on it",
                                     "trellis topo show\n"
                                     "trellis topo show \"trn2.48xlarge x 4\"\n"
                                     "trellis topo show torus:4x4x4 --what-if slow:0-1:0.5 --json\n"
                                     "trellis topo show host -n 4 --json\n"
                                     "trellis topo show --hosts node0,node1 -n 4\n"
                                     "HWLOC_SYNTHETIC='pack:2 l3:4 core:8 pu:2' trellis topo show -n 6",
                                     add_show, show);
const RegisteredCommand draw_command("topo draw", "Draws a machine, and where ranks go on it, as SVG",
                                     "trellis topo draw -n 4 -o host.svg\n"
                                     "trellis topo draw \"trn2.48xlarge x 4\" -o cluster.svg\n"
                                     "trellis topo draw network.yml -o network.svg\n"
                                     "trellis topo draw host -n 2 --equal > host.svg",
                                     add_draw, draw);

}  // namespace
}  // namespace trellis::tools
