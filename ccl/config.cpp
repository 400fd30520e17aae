#include "ccl/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <vector>

#include "ccl/plan/schedule_file.h"
#include "ccl/plan/selection_table.h"
#include "ccl/process_device.h"
#include "ccl/rendezvous/pmix_rendezvous.h"
#include "ccl/transports/registry.h"
#include "net/address.h"
#include "schedule/algorithms/algorithm.h"
#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::ccl {
namespace {

constexpr int most_ranks = 1 << 24;

// A variable with an empty value counts as not set.
std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here changes the environment
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

bool is_set(const char* name) { return variable(name).has_value(); }

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view expected) {
  text::refuse("{}={}: expected {}", name, value, expected);
}

std::optional<int> integer(const char* name, int least, int most) {
  const std::optional<std::string> value = variable(name);
  if (!value) return std::nullopt;
  const std::optional<int> number = text::number<int>(*value, least, most);
  if (!number) refuse(name, *value, fmt::format("an integer from {} to {}", least, most));
  return number;
}

std::optional<bool> flag(const char* name) {
  const std::optional<std::string> value = variable(name);
  if (value && *value != "0" && *value != "1") refuse(name, *value, "0 or 1");
  return value ? std::optional(*value == "1") : std::nullopt;
}

std::chrono::milliseconds seconds(const char* name, const std::string& value) {
  constexpr double longest = 1e7;
  const std::optional<double> number = text::number<double>(value, 1e-3, longest);
  if (!number) refuse(name, value, "seconds, from 0.001 to 10000000, such as 30 or 0.5");
  return std::chrono::milliseconds(std::llround(*number * 1000));
}

// Checks a choice of algorithms: "ring", or "all_reduce=mesh,all_gather=ring*2".
void check_algorithms(const char* name, const std::string& value) {
  try {
    const std::vector<std::string> parts = schedule::split_at_commas(value);
    for (const std::string_view part : parts) {
      const std::size_t equals = part.find('=');
      const schedule::AlgorithmConfig config =
          schedule::algorithm_config_named(part.substr(equals == part.npos ? 0 : equals + 1));
      if (is_file(config)) continue;
      const schedule::Algorithm& a = schedule::algorithm_named(config.algorithm);
      if (equals == part.npos && parts.size() > 1)
        text::refuse("'{}' stands beside others and names no collective", part);
      if (equals == part.npos) continue;
      const schedule::Collective c = schedule::collective_named(part.substr(0, equals));
      if (std::ranges::find(a.serves, c) == a.serves.end())
        text::refuse("{} is no algorithm for {}", a.name, part.substr(0, equals));
    }
  } catch (const std::invalid_argument& e) {
    refuse(name, value, fmt::format("an algorithm, or collective=algorithm,...; {}", e.what()));
  }
}

struct Names {
  const char *rank, *ranks, *local_rank, *local_ranks, *by;
};
constexpr Names torchrun = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "the environment"};
constexpr Names open_mpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                            "OMPI_COMM_WORLD_LOCAL_SIZE", "mpirun"};
constexpr Names mpich = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "mpiexec"};

// Whether this launcher set any variable. If so, all that are needed must be set and consistent.
bool read_ranks(const Names& names, LaunchedProcess& l) {
  const std::optional<int> rank = integer(names.rank, 0, most_ranks - 1);
  const std::optional<int> ranks = integer(names.ranks, 1, most_ranks);
  if (!rank && !ranks) return false;
  if (!rank || !ranks)
    text::refuse("{} is set, but {} is not: a rank needs both", rank ? names.rank : names.ranks,
                 rank ? names.ranks : names.rank);
  if (*rank >= *ranks) refuse(names.rank, std::to_string(*rank), fmt::format("less than {}={}", names.ranks, *ranks));
  const std::optional<int> local_rank = integer(names.local_rank, 0, most_ranks - 1);
  const std::optional<int> local_ranks = integer(names.local_ranks, 1, most_ranks);
  if (local_rank.has_value() != local_ranks.has_value())
    text::refuse("{} is set, but {} is not: a rank needs both or neither",
                 local_rank ? names.local_rank : names.local_ranks, local_rank ? names.local_ranks : names.local_rank);
  l.rank = *rank;
  l.ranks = *ranks;
  l.local_rank = local_rank.value_or(*rank);
  l.local_ranks = local_ranks.value_or(*ranks);
  if (l.local_ranks > l.ranks)
    refuse(names.local_ranks, std::to_string(l.local_ranks), fmt::format("at most {}={}", names.ranks, l.ranks));
  if (l.local_rank >= l.local_ranks)
    refuse(names.local_ranks, std::to_string(l.local_ranks),
           fmt::format("more than {}={}", names.local_rank, l.local_rank));
  l.by = names.by;
  return true;
}

// The node's entry of a list such as 2(x3),1: two tasks on each of three nodes, one on the fourth.
int tasks_on_node(const char* name, const std::string& list, int node) {
  std::size_t at = 0;
  while (at < list.size()) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const std::string part = list.substr(at, comma - at);
    const std::size_t times = part.find("(x");
    const std::optional<int> tasks = text::number<int>(part.substr(0, times), 1);
    const std::optional<int> nodes =
        times == part.npos
            ? 1
            : text::number<int>(part.substr(times + 2, part.size() - std::min(part.size(), times + 3)), 1);
    if (!tasks || !nodes) break;
    if (node < *nodes) return *tasks;
    node -= *nodes;
    at = comma + 1;
  }
  refuse(name, list, "tasks a node, such as 2(x3),1, for every node up to SLURM_NODEID");
}

// A batch script has SLURM_PROCID too; only a step of srun has a step id.
bool read_slurm(LaunchedProcess& l) {
  if (!is_set("SLURM_PROCID") || !is_set("SLURM_STEP_ID")) return false;
  const char* total = is_set("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  read_ranks({"SLURM_PROCID", total, "", "", "srun"}, l);
  const std::optional<int> local_rank = integer("SLURM_LOCALID", 0, most_ranks - 1);
  if (!local_rank) throw std::invalid_argument("SLURM_PROCID is set, but SLURM_LOCALID is not: a rank needs both");
  l.local_rank = *local_rank;
  const char* counts = is_set("SLURM_STEP_TASKS_PER_NODE") ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE";
  if (const auto list = variable(counts))
    l.local_ranks = tasks_on_node(counts, *list, integer("SLURM_NODEID", 0, most_ranks).value_or(0));
  if (l.local_rank >= l.local_ranks)
    refuse("SLURM_LOCALID", std::to_string(l.local_rank),
           fmt::format("less than the {} tasks of its node", l.local_ranks));
  return true;
}

// The first host of a list such as gpu[03-07,12],cpu1: rank 0 runs there.
std::string first_host(const std::string& list) {
  std::string host;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const std::size_t close = std::min(list.find(']', i), list.size());
    const std::string choices = list.substr(i + 1, close - i - 1);
    host += choices.substr(0, choices.find_first_of(",-"));
    i = close;
  }
  return host;
}

// Without PMIx, srun gives a list of hosts; the port is computed from the numbers of the job and the step.
void meet_as_slurm_tells(LaunchedProcess& l) {
  constexpr int first_port = 20'000, apart = 8, jobs_apart = 1'500;
  const std::optional<std::string> hosts = variable("SLURM_STEP_NODELIST");
  const std::optional<int> job = integer("SLURM_JOB_ID", 0, std::numeric_limits<int>::max());
  if (!hosts || !job) return;
  const std::optional<int> step = text::number<int>(variable("SLURM_STEP_ID").value_or(""));
  l.address = first_host(*hosts);
  l.port = first_port + apart * static_cast<int>((std::int64_t{*job} * 31 + step.value_or(0)) % jobs_apart);
}

// Reads the address of rank 0, "10.0.0.1:29500", from the variables that users of the Neuron runtime and of NCCL set.
void read_root_address(LaunchedProcess& l) {
  for (const char* name : {"NEURON_RT_ROOT_COMM_ID", "NCCL_COMM_ID"}) {
    const std::optional<std::string> value = variable(name);
    if (!value) continue;
    const auto place = net::host_and_port(*value);
    if (!place) refuse(name, *value, "HOST:PORT of rank 0");
    std::tie(l.address, l.port) = *place;
    return;
  }
}

bool read_pmix(LaunchedProcess& l) {
  const std::optional<int> rank = integer("PMIX_RANK", 0, most_ranks - 1);
  if (!rank) return false;
  l.rank = *rank;
  l.ranks = ranks_by_pmix();
  l.local_rank = l.rank;
  l.local_ranks = l.ranks;
  l.by = "PMIx";
  return true;
}

}  // namespace

Config config_from_environment() {
  Config c;
  if (const auto v = variable("TRELLIS_TIMEOUT")) c.timeout = seconds("TRELLIS_TIMEOUT", *v);
  if (const auto v = variable("TRELLIS_ALGORITHM")) check_algorithms("TRELLIS_ALGORITHM", c.algorithm = *v);
  c.selections = variable("TRELLIS_SELECTIONS").value_or("");
  if (const auto v = variable("TRELLIS_MACHINE")) {
    try {
      expect_machine(c.machine = *v);
    } catch (const std::invalid_argument& e) {
      refuse("TRELLIS_MACHINE", *v, fmt::format("a machine's name; {}", e.what()));
    }
  }
  if (const auto v = variable("TRELLIS_TRANSPORT")) {
    try {
      c.transport = transport_named(*v).name;
    } catch (const std::invalid_argument& e) {
      refuse("TRELLIS_TRANSPORT", *v, fmt::format("a transport's name; {}", e.what()));
    }
  }
  if (const auto v = variable("TRELLIS_ROUNDING")) {
    try {
      c.rounding = kernels::rounding_named(*v);
    } catch (const std::invalid_argument&) {
      refuse("TRELLIS_ROUNDING", *v, "nearest, truncate or stochastic");
    }
  }
  if (const auto v = variable("TRELLIS_SEED")) {
    const std::optional<std::uint64_t> seed = text::number<std::uint64_t>(*v);
    if (!seed) refuse("TRELLIS_SEED", *v, "an integer from 0 to 18446744073709551615");
    c.seed = *seed;
  }
  if (const auto v = variable("TRELLIS_WIRE")) {
    if (*v != "f32" && *v != "bf16") refuse("TRELLIS_WIRE", *v, "f32 or bf16");
    c.wire = kernels::dtype_named(*v);
  }
  c.dump = variable("TRELLIS_DUMP").value_or("");
  c.single_copy = flag("TRELLIS_SINGLE_COPY").value_or(false);
  c.rounds = flag("TRELLIS_ROUNDS").value_or(true);
  c.fabric = fabric_from_environment();
  return c;
}

namespace {

// Accepts "ofi", "aws-ofi", "libnccl-net-ofi.so", a path to that or to "libnccl-net.so", as AWS installs it, and
// "none".
bool is_plugin_of_libfabric(const std::string& name) {
  return name == "none" || name.find("ofi") != name.npos || name.ends_with("libnccl-net.so");
}

// Reads the variables that users of NCCL over libfabric have set. Refuses those whose effect this library cannot give.
void read_foreign(FabricSettings& f) {
  f.sockets = sockets_from_environment();
  if (const auto v = variable("NCCL_IB_HCA"))
    refuse("NCCL_IB_HCA", *v, "no device of verbs: hosts are reached through libfabric; see TRELLIS_INTERFACE");
  if (const auto v = variable("NCCL_SOCKET_FAMILY"); v && *v != "AF_INET")
    refuse("NCCL_SOCKET_FAMILY", *v, "AF_INET or unset: libfabric chooses between addresses, IPv4 first");
  if (f.host.empty()) f.host = variable("NCCL_HOSTID").value_or("");
  if (const auto v = variable("OFI_NCCL_PROTOCOL")) {
    if (*v != "RDMA" && *v != "SENDRECV") refuse("OFI_NCCL_PROTOCOL", *v, "RDMA (remote writes) or SENDRECV (tagged)");
    f.tagged = f.tagged || *v == "SENDRECV";
  }
  f.not_over_tcp = variable("OFI_NCCL_EXCLUDE_TCP_IF").value_or("");
  f.product = variable("OFI_NCCL_FORCE_PRODUCT_NAME").value_or("");
  if (const auto v = variable("NCCL_NET_PLUGIN"); v && !is_plugin_of_libfabric(*v))
    refuse("NCCL_NET_PLUGIN", *v, "aws-ofi, none or unset: hosts are reached through libfabric, without a plugin");
  if (const auto v = variable("NCCL_NET"); v && *v != "AWS Libfabric" && *v != "OFI" && *v != "ofi")
    refuse("NCCL_NET", *v, "'AWS Libfabric' or unset: hosts are reached through libfabric; see TRELLIS_PROVIDER");
}

}  // namespace

std::string sockets_from_environment() {
  return variable("NCCL_SOCKET_IFNAME").value_or(variable("CCOM_SOCKET_IFNAME").value_or(""));
}

FabricSettings fabric_from_environment() {
  FabricSettings f;
  f.provider = variable("TRELLIS_PROVIDER").value_or("");
  f.interface = variable("TRELLIS_INTERFACE").value_or("");
  f.host = variable("TRELLIS_HOST").value_or("");
  f.tagged = flag("TRELLIS_TAGGED").value_or(false);
  f.checksum = flag("TRELLIS_CHECKSUM").value_or(false);
  read_foreign(f);
  f.rails = integer("TRELLIS_RAILS", 1, 4).value_or(integer("OFI_NCCL_FORCE_NUM_RAILS", 1, 4).value_or(1));
  f.registrations = integer("TRELLIS_REGISTRATIONS", 0, 65536).value_or(f.registrations);
  f.instance = variable("TRELLIS_INSTANCE").value_or("");
  return f;
}

LaunchedProcess launched_from_environment() {
  LaunchedProcess l;
  // srun can set PMI_RANK too, but then nothing beside it tells which ranks share a node. So MPICH's variables come
  // before Slurm's only with MPI_LOCALRANKID, which mpiexec sets, also in a step of srun.
  const bool any = read_ranks(torchrun, l) || read_ranks(open_mpi, l) ||
                   (is_set(mpich.local_rank) && read_ranks(mpich, l)) || read_slurm(l) || read_ranks(mpich, l) ||
                   read_pmix(l);
  if (!any) return l;
  if (is_set("TORCHELASTIC_RUN_ID")) l.by = "torchrun";
  l.pmix = is_set("PMIX_RANK") && l.by != torchrun.by && l.by != "torchrun";
  l.secret = secret_from_environment();
  const std::optional<std::string> address = variable("MASTER_ADDR");
  const std::optional<int> port = integer("MASTER_PORT", 1, 65535);
  if (address.has_value() != port.has_value())
    text::refuse("{} is set, but {} is not: the store needs both", address ? "MASTER_ADDR" : "MASTER_PORT",
                 address ? "MASTER_PORT" : "MASTER_ADDR");
  l.address = address.value_or("");
  l.port = port.value_or(0);
  if (!address) read_root_address(l);
  if (!address && !l.pmix && l.by == "srun") meet_as_slurm_tells(l);
  return l;
}

int devices_from_environment() { return integer("TRELLIS_DEVICES", 1, 4096).value_or(0); }

std::string device_from_environment() { return variable("TRELLIS_DEVICE").value_or("host"); }

std::string secret_from_environment() { return variable("TRELLIS_SECRET").value_or(""); }

}  // namespace trellis::ccl
