#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <tuple>

#include "measure/bench_names.h"
#include "measure/published/record.h"
#include "measure/published/runtime_choice.h"
#include "sim/cluster/choose/algorithm_choice.h"
#include "sim/cluster/machine/launch_mode.h"
#include "sim/cluster/price/uncertainty_interval.h"
#include "sim/hardware/figures/embedded_files.h"
#include "text/refuse.h"
#include "text/words.h"

// Records of collectives and networks: priced on the machine and with the runtime that they are about.
namespace trellis::measure {
namespace {

using schedule::Collective;
using schedule::Rank;
using sim::AlgorithmConfig;
using sim::Machine;
using sim::Pricer;
using sim::RankGroup;

bool is_one_of(const Record& r, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view w) { return r.id.find(w) != std::string::npos; });
}

// Accepts "allreduce" and "reducescatter", too, beside the words of benchmarks.
BenchOp op_of(const std::string& word) {
  for (const Collective c : schedule::collectives()) {
    std::string plain(schedule::name(c));
    std::erase(plain, '_');
    if (plain == word && word != "sendrecv") return {c, word};
  }
  return bench_op(word);
}

Rank nodes_of(const Record& r) {
  const Rank nodes = r.count("nodes").value_or(1);
  if (nodes == 0) throw std::invalid_argument("nodes is 0: expected at least 1");
  return nodes;
}
Rank ranks_of(const Record& r) {
  const auto ranks = r.count("ranks");
  return ranks ? *ranks : r.count("tp").value_or(0);
}

// The longest machine name that the instance begins with; else the generation's usual machine. With neither given, 32
// ranks on a node are a whole trn1.32xlarge, as in the older records of the same table, and other numbers are a trn2.
std::string machine_of(const Record& r) {
  const std::string instance = text::lower(r.instance);
  std::string found;
  for (const std::string& name : sim::machine_names())
    if (instance.starts_with(name) && name.size() > found.size()) found = name;
  if (!found.empty()) return found;
  const std::array families = {std::tuple{"inf2", "", "inf2.48xlarge"}, std::tuple{"trn1n", "", "trn1n.32xlarge"},
                               std::tuple{"trn1", "v2", "trn1.32xlarge"}, std::tuple{"trn2", "v3", "trn2.48xlarge"}};
  for (const auto& [family, generation, usual] : families)
    if (instance.starts_with(family)) return usual;
  for (const auto& [family, generation, usual] : families)
    if (*generation != '\0' && r.generation.ends_with(generation)) return usual;
  return ranks_of(r) / nodes_of(r) == 32 ? "trn1.32xlarge" : "trn2.48xlarge";
}

// Who launched the collective. Records say "host (torch.distributed ...)", "device trace ...", "host-dispatched
// NEFF ...".
std::string launch_of(const Record& r) {
  const std::string said = text::lower(r.word("launch"));
  if (said.find("neff") != std::string::npos || said.find("graph replay") != std::string::npos) return "graph";
  if (said.starts_with("host")) return "host";
  return "device";
}

// A machine and its pricers, kept for later records: the machine is read once, and the pricers keep their patterns.
struct Place {
  std::unique_ptr<Machine> machine;
  std::map<std::string, std::unique_ptr<Pricer>> pricers = {};
};

// Returns the named machine, with so many nodes. `joined`: physical cores of a rank (LNC); 0: the chip's usual number.
Place& place(const std::string& name, Rank nodes, std::int32_t joined = 0) {
  static std::map<std::string, Place> places;
  const std::string whole = nodes == 1 ? name : fmt::format("{} x {}", name, nodes);
  Place& found = places[fmt::format("{} {}", whole, joined)];
  if (!found.machine) {
    sim::MachineSpec spec = sim::machine_spec(whole);
    if (joined > 0) spec.figures.set("logical.cores", joined);
    found.machine = std::make_unique<Machine>(std::move(spec));
  }
  return found;
}

// A group of `ranks` ranks: the first `ranks` / `nodes` of each node.
RankGroup group_on(const Machine& machine, Rank ranks, Rank nodes) {
  if (nodes == 1) return sim::first_ranks(machine, ranks);
  if (ranks % nodes != 0) text::refuse("{} ranks on {} nodes", ranks, nodes);
  const Rank host = machine.ranks() / nodes, each = ranks / nodes;
  RankGroup group = sim::first_ranks(machine, each);
  group.members.clear();
  if (each == 1) group.dims.clear();
  group.dims.push_back(nodes);
  for (Rank node = 0; node < nodes && each < host; ++node)
    for (Rank i = 0; i < each; ++i) group.members.push_back(node * host + i);
  return group;
}

int minor_version(const Record& r) {
  const std::string text = r.word("doc_first_seen");  // "v2.28.0"
  const std::size_t dot = text.find('.');
  return dot == std::string::npos ? 0 : std::atoi(text.c_str() + dot + 1);
}

bool by_host(std::string_view era) { return era.ends_with("-host"); }

// Records without chip and date are from the current documentation.
constexpr const char* newest = "2025";

// The runtime era whose figures price the record. In nccom-test's tables that first appeared in the
// documentation of Neuron 2.28 or later, the host starts each collective and waits for it, so they take the era's
// "-host" figures.
std::string era_of(const Record& r, const Machine& machine) {
  const std::string said = r.word("runtime_era").substr(0, 4);
  if (const std::string date = r.word("date"); said == "2026" || (said.empty() && date.starts_with("2026"))) {
    const std::string launch = launch_of(r);
    return launch == "device" ? "2026" : "2026-" + launch;
  }
  if (said.empty()) return r.generation == "unknown" ? newest : machine.spec().era;
  const auto known = machine.eras();
  const std::string from_host = said + "-host";
  const bool host = minor_version(r) >= 28 && std::ranges::find(known, from_host) != known.end();
  return host ? from_host : said;
}

// Whether calls follow each other without waiting, between two synchronisations: then the mean is what one call adds.
bool queued(const Record& r) {
  const std::string said = text::lower(r.word("launch"));
  if (said.find("after each") != std::string::npos || said.find("sync per call") != std::string::npos) return false;
  return r.parameters.contains("trials") || said.find("synchronize before") != std::string::npos;
}

Pricer& pricer_for(const Record& r, Place& at, const BenchOp& op, Rank ranks) {
  const std::string era = era_of(r, *at.machine), type = r.word("dtype") == "unknown" ? "" : r.word("dtype");
  const std::string key = fmt::format("{} {} {} {}", op.word, ranks, era, type);
  std::unique_ptr<Pricer>& kept = at.pricers[key];
  if (kept) return *kept;
  Pricer::Settings settings{.operation = {.collective = op.collective, .peer = sim::last_rank}, .era = era};
  if (!type.empty()) settings.element = static_cast<double>(size_of(bench_type(type, BenchStyle::nccom)));
  for (Rank i = 0; op.collective == Collective::permute && i < ranks; ++i)
    settings.operation.pairs.push_back({i, (i + 1) % ranks});
  kept = std::make_unique<Pricer>(*at.machine, group_on(*at.machine, ranks, nodes_of(r)), settings);
  return *kept;
}

// The records that the machine's figures were fitted to, and this one if a figure's source names it.
std::vector<std::string> fitted_in(const Machine& machine, const Record& r) {
  std::vector<std::string> records;
  for (const auto& [key, figure] : machine.spec().figures.all()) {
    records.insert(records.end(), figure.records.begin(), figure.records.end());
    if (figure.source.find(r.id) != std::string::npos) records.push_back(r.id);
  }
  return records;
}

RecordAnswer in_unit(const Record& r, const sim::Price& price, std::string by) {
  if (const auto time = time_in(r.unit, price.time)) return {.simulated = time, .by = std::move(by)};
  const double rate = r.says("bus bandwidth") ? price.busbw : price.algbw;
  if (r.unit == "GB/s") return {.simulated = rate * 1e-9, .by = std::move(by)};
  if (r.unit == "GiB/s") return {.simulated = rate / (1 << 30), .by = std::move(by)};
  return RecordAnswer::no(fmt::format("unit '{}'", r.unit));
}

// Bytes of the larger buffer. For a bandwidth without a size: a size large enough to reach the limit.
std::optional<double> bytes_of(const Record& r, Rank ranks) {
  constexpr double plateau = 1 << 30;
  auto bytes = r.number("size_bytes");
  if (!bytes && r.unit.ends_with("B/s")) bytes = plateau;
  const bool each = text::lower(r.word("size_convention")).find("output is") != std::string::npos;
  if (bytes && each && op_of(r.word("op")).collective == Collective::all_gather) return *bytes * ranks;
  return bytes;
}

// Where calls are queued without waiting: the fraction of a launch that the call before does not hide; none: unknown.
std::optional<double> part_in_queue(const sim::MachineSpec& spec, const std::string& era) {
  const std::string key = fmt::format("era.{}.queued", era);
  return spec.figures.has(key) ? std::optional(spec.figures.number(key)) : std::nullopt;
}

// Adds to an answer how sure it is: the range that uncertain figures leave to it, the launch as a figure of its own,
// and the kind of answers whose errors it shares. `price`: of the collective itself, not of what was added to it.
void add_range(RecordAnswer& found, const Record& r, Pricer& pricer, const AlgorithmConfig& config,
               const sim::Price& price) {
  const std::string& era = pricer.settings().era;
  found.kind = sim::collective_error(era);
  const sim::MachineSpec& spec = pricer.machine().spec();
  const std::string key = fmt::format("era.{}.launch", era.empty() ? spec.era : era);
  const auto unit = seconds_of(r.unit);
  const sim::UncertaintyInterval interval =
      sim::interval(pricer.pattern(config, price.bytes), spec, pricer.options(price.bytes), price.time);
  double below = 0, above = 0;
  for (const sim::Sensitivity& s : interval.sensitivities) {
    if (unit && s.figure == key) continue;
    below = std::hypot(below, sim::in_seconds(price.time - s.low));
    above = std::hypot(above, sim::in_seconds(s.high - price.time));
  }
  const double time = sim::in_seconds(price.time);
  if (!unit) {
    found.range = {*found.simulated * time / (time + above),
                   *found.simulated * time / std::max(time - below, time / 1e3)};
    return;
  }
  const sim::Figure& figure = spec.figures.at(key);
  const sim::SoftwareOverheads o = pricer.machine().overheads(era);
  const double launched = sim::in_seconds(o.launched(pricer.group().ranks())) / *unit;
  LaunchOverhead launch{key, figure.value / *unit, {figure.low / *unit, figure.high / *unit}};
  launch.growth = sim::launch_growth(o.late, pricer.group().ranks());
  launch.further = launched - launch.growth * launch.value;
  const double rest = launch.rest = *found.simulated - launched;
  if (const auto part = queued(r) ? part_in_queue(spec, era) : std::nullopt) launch.part = *part;
  found.simulated = launch.with(launch.value, rest);
  found.range = {launch.with(launch.value, std::max(0.0, rest - below / *unit)),
                 launch.with(launch.value, rest + above / *unit)};
  found.launch = std::move(launch);
}

RecordAnswer collective(const Record& r) {
  const Rank ranks = ranks_of(r), nodes = nodes_of(r);
  if (r.word("op").empty()) return RecordAnswer::no("no collective is named");
  if (ranks < 2) return RecordAnswer::no("the number of ranks isn't given");
  if (r.says("average")) return RecordAnswer::no("an average over sizes that aren't given");
  const BenchOp op = op_of(r.word("op"));
  const auto bytes = bytes_of(r, ranks);
  if (!bytes) return RecordAnswer::no("the size isn't given");
  const std::string name = machine_of(r);
  if (!sim::has_data("machines", name)) return RecordAnswer::no(fmt::format("no machine file for {}", name));
  Place& at = place(name, nodes, r.count("lnc").value_or(0));
  Pricer& pricer = pricer_for(r, at, op, ranks);
  const auto best = sim::fastest(pricer, runtime_configs(r, pricer, nodes, *bytes), *bytes);
  if (!best) return RecordAnswer::no("no algorithm serves it");
  const sim::Price price = pricer.price(best->config, *bytes);
  sim::Price whole = price;
  std::string by = fmt::format("{} on {}, era {}", text_of(best->config), at.machine->name(), pricer.settings().era);
  if (!r.word("concurrent_with").empty() && by_host(pricer.settings().era)) {  // the host launches one, then the other
    whole.time += at.machine->overheads(pricer.settings().era).launched(ranks);
    by += ", and the launch of the other stream's";
  }
  RecordAnswer found = in_unit(r, whole, std::move(by));
  found.fitted_to = fitted_in(*at.machine, r);
  if (found.simulated) add_range(found, r, pricer, best->config, price);
  return found;
}

// A latency is the sum of those of the path's links. For a bandwidth, ranks of one server write to their counterparts
// on another server: one rank, one of each chip, or all.
RecordAnswer network(const Record& r) {
  Place& at = place(machine_of(r), 2);
  const Machine& machine = *at.machine;
  const Rank host = machine.ranks() / 2;
  std::vector<sim::ResourceId> way;
  machine.route(0, r.says("inside a node") ? machine.cores() : host, way);
  if (r.says("latency")) {
    sim::Time latency = 0;
    for (const sim::ResourceId link : way) latency += machine.latency(link);
    if (r.says("per-hop")) {
      const sim::SoftwareOverheads o = machine.overheads(newest);
      latency += o.handshake + o.dma_start + o.semaphore;
    }
    const auto value = time_in(r.unit, latency);
    if (!value) return RecordAnswer::no(fmt::format("unit '{}'", r.unit));
    if (r.says("end of the stated range"))
      return RecordAnswer::no(
          fmt::format("one end of a range that is stated; here it takes {:.2f} {}", *value, r.unit));
    return {.simulated = value, .by = "the latencies of the way", .fitted_to = fitted_in(machine, r)};
  }
  if (r.unit != "GB/s") return RecordAnswer::no(fmt::format("unit '{}'", r.unit));
  constexpr double bytes = 256 << 20;
  const Rank step = is_one_of(r, {"64_core", "64thr"}) ? 1 : machine.cores();
  Pricer::Settings settings{.operation = {.collective = Collective::permute}};
  for (Rank i = 0; i < (r.says("one device") ? 1 : host); i += r.says("one device") ? 1 : step)
    settings.operation.pairs.push_back({i, host + i});
  const double pairs = static_cast<double>(settings.operation.pairs.size());
  Pricer pricer(machine, sim::groups_of(machine).front(), settings);
  const auto best = sim::fastest(pricer, sim::configs_of(pricer, {}, {1}, {1}), bytes);
  if (!best) return RecordAnswer::no("no algorithm serves it");
  return {.simulated = pairs * bytes / sim::in_seconds(best->time) * 1e-9,
          .by = fmt::format("{} writes of 256 MiB on {}", pairs, machine.name()),
          .fitted_to = fitted_in(machine, r)};
}

std::optional<RecordAnswer> coll(const Record& r, const std::vector<Record>&) {
  if (r.kind() != "coll" && r.kind() != "net" && r.kind() != "overlap") return std::nullopt;
  if (r.unit == "%") return RecordAnswer::no("a change between two releases, of which neither's time is given");
  if (r.kind() == "net") return network(r);
  if (is_one_of(r, {"compute", "idle"})) return RecordAnswer::no("not a collective's time");
  if (is_one_of(r, {"trigger_to_start", "barrier_op"}))
    return RecordAnswer::no("a step within a collective that its launch and handshakes are made of");
  if (is_one_of(r, {"permute"}) && !r.number("size_bytes")) return RecordAnswer::no("the size isn't given");
  return collective(r);
}

const RegisteredRecordModel registered("collectives", coll);

}  // namespace
}  // namespace trellis::measure
