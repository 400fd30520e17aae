#include "launch/start_rank.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <system_error>
#include <tuple>

#include "kernels/dispatch/sysfs_topology.h"
#include "text/number_parsing.h"

namespace trellis::launch {
namespace {

std::system_error failure(const std::string& what) { return {errno, std::generic_category(), what}; }

std::pair<net::Descriptor, net::Descriptor> pipe_ends() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw failure("a pipe for a rank");
  return {net::Descriptor(ends[0]), net::Descriptor(ends[1])};
}

std::vector<std::string> environment_of(const LaunchOptions& job, int local_rank, int cores) {
  std::map<std::string, std::string> ours = {{"RANK", std::to_string(job.node * job.ranks + local_rank)},
                                             {"WORLD_SIZE", std::to_string(job.nodes * job.ranks)},
                                             {"LOCAL_RANK", std::to_string(local_rank)},
                                             {"LOCAL_WORLD_SIZE", std::to_string(job.ranks)},
                                             {"GROUP_RANK", std::to_string(job.node)},
                                             {"GROUP_WORLD_SIZE", std::to_string(job.nodes)},
                                             {"MASTER_ADDR", job.address},
                                             {"MASTER_PORT", std::to_string(job.port)},
                                             {"TRELLIS_SECRET", job.secret}};
  if (job.most_restarts > 0) {
    ours["TORCHELASTIC_RESTART_COUNT"] = std::to_string(job.restart);
    ours["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(job.most_restarts);
  }
  bool threads_told = false;
  std::vector<std::string> entries;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string entry = *e, name = entry.substr(0, entry.find('='));
    threads_told = threads_told || name == "OMP_NUM_THREADS";
    // Another launcher's variables are about this process, not about its ranks.
    const bool anothers = name.starts_with("TORCHELASTIC_") || name.starts_with("OMPI_COMM_WORLD_") ||
                          name.starts_with("PMI") || name.starts_with("SLURM_PROCID");
    if (!ours.contains(name) && !anothers) entries.push_back(entry);
  }
  if (!threads_told && job.ranks > 1) ours.emplace("OMP_NUM_THREADS", std::to_string(cores));
  for (const auto& [name, value] : ours) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> p;
  for (std::string& word : words) p.push_back(word.data());
  p.push_back(nullptr);
  return p;
}

// Runs in the child, up to exec. Returns errno when the program cannot be run.
void become(std::vector<std::string> program, std::vector<std::string> environment, pid_t parent, int input, int output,
            int errors, const std::vector<int>& threads, const rlimit& descriptors) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);                // the parent died before the child could watch it
  if (!threads.empty()) kernels::stay_on(threads);  // best effort: ranks also run where it is refused
  if (input >= 0) dup2(input, 0);
  if (output >= 0) dup2(output, 1);
  if (errors >= 0) dup2(errors, 2);
  setrlimit(RLIMIT_NOFILE, &descriptors);
  sigset_t none;
  sigemptyset(&none);
  std::signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(program.front().c_str(), pointers(program).data(), pointers(environment).data());
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(opendir("/proc"), closedir);
  if (!processes) return found;
  while (const dirent* entry = readdir(processes.get())) {  // NOLINT(concurrency-mt-unsafe): the stream is not shared
    const auto pid = text::number<pid_t>(entry->d_name);
    if (!pid) continue;
    std::ifstream file(fmt::format("/proc/{}/stat", *pid));
    std::string stat;
    std::getline(file, stat);
    const std::size_t name_ends = stat.rfind(')');  // the process name may contain anything; after it: state, parent
    if (name_ends == std::string::npos || name_ends + 4 > stat.size()) continue;
    std::string_view rest = std::string_view(stat).substr(name_ends + 4);
    if (text::take_number<pid_t>(rest) == getpid()) found.push_back(*pid);
  }
  return found;
}

}  // namespace

StartedRank start_rank(const LaunchOptions& job, int local_rank, const RankPlace& place, const rlimit& descriptors) {
  StartedRank rank;
  net::Descriptor output, errors;
  if (!job.raw) {
    std::tie(rank.output, output) = pipe_ends();
    std::tie(rank.errors, errors) = pipe_ends();
  }
  auto [told, tells] = pipe_ends();  // reports why exec failed; closed by a successful exec
  // Only the first rank gets our input: several readers would each get a part of it. No rank reads from a terminal,
  // because ranks are not in its foreground group.
  const bool reads = job.node == 0 && local_rank == 0 && isatty(0) == 0;
  const net::Descriptor nothing(reads ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<std::string> environment = environment_of(job, local_rank, place.cores);
  const pid_t parent = getpid();
  rank.pid = fork();
  if (rank.pid < 0) throw failure("a process for a rank");
  if (rank.pid == 0) {
    become(job.program, std::move(environment), parent, nothing.number(), output.number(), errors.number(),
           place.threads, descriptors);
    const int error = errno;
    _exit(write(tells.number(), &error, sizeof error) > 0 ? 127 : 126);
  }
  setpgid(rank.pid, rank.pid);  // in parent and child, as either may run first
  tells = net::Descriptor();
  int error = 0;
  ssize_t got = 0;
  while ((got = read(told.number(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (got > 0) {
    waitpid(rank.pid, nullptr, 0);
    throw std::system_error(error, std::generic_category(), fmt::format("cannot run '{}'", job.program.front()));
  }
  return rank;
}

void sweep_processes() {
  for (std::vector<pid_t> left = children(); !left.empty(); left = children()) {
    for (const pid_t pid : left) kill(pid, SIGKILL);
    for (const pid_t pid : left) waitpid(pid, nullptr, 0);  // orphaned children become ours
  }
}

}  // namespace trellis::launch
