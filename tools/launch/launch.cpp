#include <algorithm>
#include <cerrno>
#include <cmath>
#include <system_error>

#include "ccl/config.h"
#include "ccl/print_to_stderr.h"
#include "launch/launch_on_hosts.h"
#include "launch/launch_ranks.h"
#include "net/sha256.h"
#include "net/socket.h"
#include "text/refuse.h"
#include "tools/program/command.h"
#include "tools/program/raw_arguments.h"

namespace trellis::tools {

using namespace launch;
namespace {

struct Options {
  LaunchOptions job;
  double grace_s = 10;
  bool pin = false, no_pin = false, tether = false;
  std::string hosts, hosts_file, shell = "ssh";
  std::vector<std::string> passed;
  const CLI::App* app = nullptr;

  bool several_hosts() const { return !hosts.empty() || !hosts_file.empty(); }
};

void add(CLI::App& app, Options& o) {
  o.app = &app;
  app.description(
      "Starts ranks of a program on this machine, watches them, and ends them together.\n\n"
      "Each rank finds in its environment what torchrun sets: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,\n"
      "GROUP_RANK, MASTER_ADDR, MASTER_PORT; OMP_NUM_THREADS, unless it is set, as the cores a rank; and\n"
      "TRELLIS_SECRET, without which no other process can join the job. Every line that a rank prints gets [RANK] in\n"
      "front. Rank 0 reads standard input, unless that is a terminal. Where cores are as many as ranks or more, each\n"
      "rank is kept on its equal part of them. Under a CPU quota of a container, whose cores are others' too, it is "
      "not,\n"
      "and OMP_NUM_THREADS is its part of the quota.\n\n"
      "The first rank that fails ends the others, on every node: SIGTERM, and SIGKILL after --grace; its status is\n"
      "the exit status, 128 and the number of the signal when one killed it. SIGINT, SIGTERM, SIGHUP, SIGQUIT,\n"
      "SIGUSR1 and SIGUSR2 are passed on to all ranks of the node; asked to end twice, launch kills. Whatever becomes\n"
      "of launch, no rank stays behind.\n\n"
      "With --max-restarts, a job that failed is started again, as often as that, with TORCHELASTIC_RESTART_COUNT in\n"
      "its environment: a program that resumes from what it saved goes on. A job that was asked to end is not.\n\n"
      "With --hosts or --hosts-file it starts itself on each host by ssh, at the path that it has here, in the same\n"
      "folder. Ranks get PATH, LD_LIBRARY_PATH, PYTHONPATH, VIRTUAL_ENV, all of TRELLIS_*, NCCL_*, OFI_*, FI_*, "
      "NEURON_*,\n"
      "CCOM_* and OMP_*, and what -x names; they read no input. When this process ends, the launches on the hosts "
      "do.\n\n"
      "By another starter, or by hand, run it on each node with the same -n, --nnodes, --master-addr and "
      "--master-port, and with the\n"
      "same TRELLIS_SECRET in the environment (openssl rand -hex 16 makes one). The launches wait for each other,\n"
      "five minutes at most, and use ports --master-port to --master-port + 8 of node 0.");
  app.add_option("-n,--nproc-per-node", o.job.ranks, "Ranks on each node");
  app.add_option("--nnodes", o.job.nodes, "Nodes in all")->capture_default_str();
  app.add_option("--node-rank", o.job.node, "Number of this node, from 0");
  app.add_option("--master-addr", o.job.address, "The host of node 0; 127.0.0.1 on one node");
  app.add_option("--master-port", o.job.port, "Port on the host of node 0 [a free one on one node, 29500 on several]");
  app.add_option("-H,--hosts", o.hosts, "Hosts, the first of them node 0: node0,node1 or node0:4,node1:4");
  app.add_option("--hostfile,--hosts-file", o.hosts_file,
                 "A file of hosts, one per line: node0, node0:4 or node0 slots=4");
  app.add_option("--rsh", o.shell, "Command that runs a program on another host")->capture_default_str();
  app.add_option("-x", o.passed, "Another environment variable to pass to ranks on hosts; repeatable");
  app.add_flag("--tether", o.tether, "Of a launch that another one started")->group("");
  app.add_flag("--raw", o.job.raw, "Ranks print by themselves, without prefixes");
  auto* const pin = app.add_flag("--pin", o.pin,
                                 "Bind each rank to a core, in the order of trellis topo show -n; with more ranks than "
                                 "cores, to a hardware thread");
  app.add_flag("--no-pin", o.no_pin, "Ranks run on any core")->excludes(pin);
  app.add_option("--max-restarts", o.job.most_restarts, "How often a job that failed is started again; on one node")
      ->capture_default_str();
  app.add_option("--grace", o.grace_s, "Seconds from SIGTERM to SIGKILL")->capture_default_str();
  app.add_option("program", o.job.program, "The program and its arguments, after --");
}

// Reserves a free port for rank 0 by binding a socket to it, so that the system gives the port to nobody else. The
// socket does not listen, so rank 0 can still bind the port (SO_REUSEADDR) and listen.
net::Descriptor reserve_port(int& port) {
  net::Descriptor socket = net::bound_to(net::addresses_of("127.0.0.1", 0).front(), SOCK_STREAM);
  if (!socket) throw std::system_error(errno, std::generic_category(), "a free port");
  port = net::local_address(socket).port();
  return socket;
}

std::vector<std::string> after_dashes(const std::vector<std::string>& parsed) {
  const std::vector<std::string> words = typed_words();
  const auto dashes = std::ranges::find(words, "--");
  return dashes == words.end() ? parsed : std::vector<std::string>(dashes + 1, words.end());
}

void check(const char* option, double value, double least, double most) {
  if (!(value >= least && value <= most)) text::refuse("{} {}: expected {} to {}", option, value, least, most);
}

void check(const Options& o) {
  const LaunchOptions& job = o.job;
  if (o.app->count("-n") == 0 && !o.several_hosts())
    throw std::invalid_argument("no ranks to start: expected -n RANKS, or hosts with slots");
  if (o.app->count("-n") != 0) check("-n", job.ranks, 1, 65'536);
  for (const char* flag : {"--rsh", "-x"})
    if (!o.several_hosts() && o.app->count(flag) != 0) text::refuse("{} goes with --hosts", flag);
  for (const char* flag : {"--nnodes", "--node-rank", "--max-restarts"})
    if (o.several_hosts() && o.app->count(flag) != 0)
      text::refuse("{} does not go with --hosts, which tells of all nodes", flag);
  check("--nnodes", job.nodes, 1, 1 << 20);
  check("--node-rank", job.node, 0, job.nodes - 1);
  check("--master-port", job.port, 0, 65'535);
  check("--max-restarts", job.most_restarts, 0, 1'000'000);
  if (job.most_restarts > 0 && job.nodes > 1)
    throw std::invalid_argument("--max-restarts is for one node: with --nnodes, start the launches again together");
  check("--grace", o.grace_s, 0, 86'400);
  if (job.program.empty()) throw std::invalid_argument("no program to launch: trellis launch -n RANKS -- PROGRAM ...");
}

int run_on_hosts(const Options& o, LaunchOptions job) {
  HostsLaunchOptions all{.hosts = hosts_in(o.hosts, o.hosts_file), .shell = o.shell, .passed = o.passed};
  job.ranks = ranks_of_hosts(all.hosts, job.ranks);
  all.job = std::move(job);
  return launch_on_hosts(std::move(all));
}

int run(const Options& o) {
  check(o);
  const std::string tethered = o.tether ? follow_tether() : "";
  LaunchOptions job = o.job;
  job.pin = o.pin ? Pin::core : o.no_pin ? Pin::none : Pin::share;
  job.program = after_dashes(job.program);
  job.grace = std::chrono::milliseconds(std::llround(o.grace_s * 1000));
  job.secret = o.tether ? tethered : ccl::secret_from_environment();
  if (o.several_hosts()) return run_on_hosts(o, std::move(job));
  if (job.nodes > 1 && job.address.empty())
    text::refuse("--nnodes {} needs --master-addr, the host of node 0", job.nodes);
  if (job.nodes > 1 && job.secret.empty())
    text::refuse("--nnodes {} needs TRELLIS_SECRET in the environment, the same on each (openssl rand -hex 16)",
                 job.nodes);
  if (job.secret.empty()) job.secret = net::fresh_secret();
  if (job.address.empty()) job.address = "127.0.0.1";
  if (job.port == 0 && job.nodes > 1) job.port = usual_port;
  const bool any_port = job.port == 0;
  for (;; ++job.restart) {
    net::Descriptor reserved;
    if (any_port) reserved = reserve_port(job.port = 0);
    const LaunchEnd end = launch::launch(job);
    if (end.status == 0 || end.told || job.restart == job.most_restarts) return end.status;
    ccl::tell("trellis launch: the job failed with status {}: restart {} of {}\n", end.status, job.restart + 1,
              job.most_restarts);
  }
}

const RegisteredCommand launch_command(
    "launch", "Starts ranks of a program, and ends them together",
    "trellis launch -n 4 -- python3 train.py --steps 100\n"
    "trellis launch -n 8 --pin -- ./solve input.txt\n"
    "trellis launch -n 4 --max-restarts 3 -- trellis train job.yaml\n"
    "trellis launch -n 8 --hosts node0,node1 -- trellis bench all_reduce_perf -b 8 -e 1G\n"
    "trellis launch --hosts-file hosts.txt --rsh 'ssh -p 2222' -x HOME -- ./solve\n"
    "TRELLIS_SECRET=$S trellis launch -n 8 --nnodes 2 --node-rank 1 "
    "--master-addr node0 -- ./solve\n"
    "trellis launch -n 2 -- sh -c 'echo I am $RANK of $WORLD_SIZE'",
    add, run);

}  // namespace
}  // namespace trellis::tools
