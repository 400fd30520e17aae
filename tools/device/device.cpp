// trellis device: what devices there are, what they can do, and whether they do it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "device/backends.h"
#include "device/capabilities.h"
#include "device/conformance/conformance.h"
#include "device/environment_variable.h"
#include "device/memory_accounting.h"
#include "device/messages/tcp_messenger.h"
#include "device/topology.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/table.h"

namespace trellis::tools {
namespace {

using namespace device;

const RegisteredCommand group({.path = "device",
                               .summary = "Devices: the host, simulated cores, NeuronCores",
                               .examples = "trellis device list\n"
                                           "trellis device show sim:trn2.48xlarge\n"
                                           "trellis device test host"});

struct ListOptions {
  bool json = false;
};

void add_list(CLI::App& app, ListOptions& o) { app.add_flag("--json", o.json, "Print JSON"); }

int list(const ListOptions& o) {
  Table table("devices", {left("device"), left("what it is")});
  for (const auto& [key, b] : backends()) {
    const std::string missing = b.missing();
    for (const std::string& name : b.names()) table.add({name, b.summary});
    if (!missing.empty()) table.add({b.pattern, "not here: " + missing});
  }
  write_output("", o.json ? table.json() : table.text());
  return 0;
}

struct ShowOptions {
  std::string name;
  int core = 0;
};

void add_name(CLI::App& app, ShowOptions& o) {
  app.add_option("name", o.name, "host, sim:MACHINE, neuron")->required();
  app.add_option("--core", o.core, "Which of the visible cores")->capture_default_str();
}

std::string topology_text(const Topology& t) {
  std::string out = fmt::format("machine {}: {} chips ({}), {} cores, of which {} are visible here\n", t.machine,
                                t.chips, t.chip, t.cores, t.visible);
  out += fmt::format("core {}: on chip {}, {}{:.2f} GB of memory\n", t.core, t.chip_of_core(),
                     t.physical_of_core == 0 ? "" : fmt::format("{} physical, ", t.physical_of_core),
                     t.memory_bytes * 1e-9);
  for (const Link& l : t.links)
    if (l.from == t.chip_of_core())
      out += fmt::format("link {} to chip {}: {:.1f} GB/s\n", l.name, l.to, l.bytes_per_second * 1e-9);
  int nearest = 0;  // an interface serves the chips from its own up to the next interface's
  for (const Nic& n : t.nics)
    if (n.chip <= t.chip_of_core()) nearest = std::max(nearest, n.chip);
  for (const Nic& n : t.nics)
    if (n.chip == nearest)
      out += fmt::format("interface {}{}\n", n.name,
                         n.bytes_per_second == 0 ? "" : fmt::format(": {:.1f} GB/s", n.bytes_per_second * 1e-9));
  for (const std::string& u : t.unknown) out += fmt::format("not known: {}\n", u);
  return out;
}

int show(const ShowOptions& o) {
  const auto d = open(o.name, {.core = o.core});
  std::string out = fmt::format("{}\n{}", d->name(), topology_text(d->topology()));
  const MemoryUse use = d->memory();
  out += fmt::format("memory: {} of {} bytes are used\n", use.used, use.limit);
  for (const Capability c : every_capability())
    out += d->capabilities().has(c) ? fmt::format("+ {}: {}\n", name(c), meaning(c))
                                    : fmt::format("- {}\n", d->why_not(c));
  write_output("", out);
  return 0;
}

struct TestOptions {
  ShowOptions device;
  bool json = false;
};

void add_test(CLI::App& app, TestOptions& o) {
  app.description("Runs every check of the conformance suite. The exit status is 1 when one fails.");
  add_name(app, o.device);
  app.add_flag("--json", o.json, "Print JSON");
}

// Sets a free port for messages: the usual one is the same on the whole host, and another program may have it.
void use_free_port(int core) {
  if (!value_of_variable(message_port_variable).empty()) return;
  const int port = net::local_address(net::listen_at(std::string(loopback), 0)).port() -
                   core;                                           // core n uses the n-th port after the named one
  setenv(message_port_variable, std::to_string(port).c_str(), 1);  // NOLINT(concurrency-mt-unsafe): none reads it now
}

int test(const TestOptions& o) {
  const auto d = open(o.device.name, {.core = o.device.core});
  use_free_port(d->topology().core);
  Table table("conformance", {left("check"), left("outcome"), left("what every device does")});
  bool all = true;
  for (const auto& [name, check] : checks()) {
    const CheckResult v = run_check(check, *d);
    all = all && v.outcome != CheckStatus::failed;
    constexpr std::string_view words[] = {"passed", "FAILED", "skipped"};
    table.add({name, std::string(words[static_cast<std::size_t>(v.outcome)]),
               v.why.empty() ? check.promise : check.promise + ": " + v.why});
  }
  write_output("", o.json ? table.json() : table.text());
  return all ? 0 : 1;
}

const RegisteredCommand list_command("device list", "Lists the devices that can be opened", "trellis device list",
                                     add_list, list);
const RegisteredCommand show_command("device show", "Shows a device's machine, memory and abilities",
                                     "trellis device show sim:trn2.48xlarge --core 5", add_name, show);
const RegisteredCommand test_command("device test", "Tests whether a device does what every device must do",
                                     "trellis device test sim:trn2.48xlarge", add_test, test);

}  // namespace
}  // namespace trellis::tools
