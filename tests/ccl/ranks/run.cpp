#include "tests/ccl/ranks/run.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "ccl/rendezvous/unique_id.h"

namespace trellis::ccl {
namespace {

std::string outcome(const std::function<void()>& work) {
  try {
    work();
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

// How each child ended. Stopped children are killed once all others have ended and nobody has continued one for `most`.
std::map<Rank, int> ends_of(const std::vector<pid_t>& children, std::chrono::milliseconds most) {
  std::map<Rank, int> ends;
  std::set<pid_t> stopped;
  auto since = Clock::now();
  while (ends.size() < children.size()) {
    if (ends.size() + stopped.size() != children.size()) since = Clock::now();
    if (ends.size() + stopped.size() == children.size() && Clock::now() - since >= most)
      for (pid_t child : stopped) kill(child, SIGKILL);
    int status = 0;
    const pid_t child = waitpid(-1, &status, WUNTRACED | WCONTINUED | (stopped.empty() ? 0 : WNOHANG));
    if (child == 0) {
      usleep(1000);
      continue;
    }
    const auto found = std::ranges::find(children, child);
    if (child <= 0 || found == children.end()) continue;
    if (WIFSTOPPED(status)) {
      stopped.insert(child);
      continue;
    }
    stopped.erase(child);
    if (!WIFCONTINUED(status)) ends[static_cast<Rank>(found - children.begin())] = status;
  }
  return ends;
}

// Hosts are only names here: processes with different ones do not use the memory that they could share.
Config config_of(Rank r, Config c) {
  if (c.transport == "hybrid" && c.fabric.host.empty()) c.fabric.host = fmt::format("host{}", r / 2);
  if (c.fabric.host.starts_with(hosts_by_rank))
    c.fabric.host = fmt::format("host{}", c.fabric.host.at(hosts_by_rank.size() + static_cast<std::size_t>(r)));
  return c;
}

// What the processes of a test share.
struct Shared {
  std::atomic<int> made;
  UniqueId id;
  char said[64][512];
};

// A thread for each rank; each makes its own communicator.
std::string in_threads(Rank ranks, const std::function<void(const std::shared_ptr<Store>&, Rank)>& live) {
  const auto store = memory_store();
  std::vector<std::string> said(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (Rank r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { said[static_cast<std::size_t>(r)] = outcome([&] { live(store, r); }); });
  for (std::thread& t : threads) t.join();
  std::string all;
  for (Rank r = 0; r < ranks; ++r)
    if (const std::string& one = said[static_cast<std::size_t>(r)]; !one.empty())
      all += fmt::format("rank {}: {}\n", r, one);
  return all;
}

}  // namespace

std::string run_threads(Rank ranks, const RankFunction& f, const Config& config) {
  Config c = config;
  c.transport = "loopback";
  return in_threads(ranks, [&](const auto& store, Rank r) { f(*Communicator::create(store, r, ranks, c)); });
}

std::string run_devices(const std::function<std::shared_ptr<device::Device>(Rank)>& open, Rank ranks,
                        const DeviceFunction& f, const std::string& algorithm) {
  Config c;
  c.transport = "loopback";
  c.algorithm = algorithm;
  c.timeout = std::chrono::seconds(20);
  return in_threads(ranks, [&](const auto& store, Rank r) {
    const auto d = open(r);
    f(*Communicator::create(store, r, ranks, c, d), *d);
  });
}

std::string run_devices(const std::string& device, Rank ranks, const DeviceFunction& f, const std::string& algorithm) {
  return run_devices([&](Rank r) { return device::open(device, {.core = r}); }, ranks, f, algorithm);
}

std::string run_processes(Rank ranks, const RankFunction& f, const Config& config, std::chrono::milliseconds stopped) {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Shared& shared = *new (memory) Shared();
  std::vector<pid_t> children;
  for (Rank r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    const std::string said = outcome([&] {
      if (r == 0) {
        shared.id = make_unique_id();
        shared.made = 1;
      }
      while (shared.made == 0) usleep(100);
      const auto store = store_for(shared.id, Clock::now() + config.timeout + std::chrono::seconds(30));
      f(*Communicator::create(store, r, ranks, config_of(r, config)));
    });
    said.copy(shared.said[r], sizeof shared.said[r] - 1);
    _exit(said.empty() ? 0 : 1);
  }
  std::string all;
  for (const auto& [r, status] : ends_of(children, stopped)) {
    if (WIFSIGNALED(status)) all += fmt::format("rank {}: signal {}\n", r, WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) all += fmt::format("rank {}: {}\n", r, shared.said[r]);
  }
  munmap(memory, sizeof(Shared));
  return all;
}

std::string run_ranks(std::string_view transport, Rank ranks, const RankFunction& f, const Config& config) {
  Config c = config;
  c.transport = transport;
  return transport_named(transport).reach == TransportFactory::Reach::process ? run_threads(ranks, f, c)
                                                                              : run_processes(ranks, f, c);
}

std::atomic<int>& seen_by_all() {
  void* const memory =
      mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *new (memory) std::atomic<int>(0);
}

void await(const std::atomic<int>& count, int enough) {
  for (const Deadline end = Clock::now() + std::chrono::minutes(2); count < enough;) {
    if (Clock::now() > end) throw std::runtime_error("the others never came so far");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::vector<std::string> at_once(std::size_t cases, const SaidByCase& said) {
  constexpr std::size_t most = 16'384;  // bytes of room for the result of a case
  void* const memory = mmap(nullptr, cases * most, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  char* const texts = static_cast<char*>(memory);
  std::vector<pid_t> children;
  for (std::size_t i = 0; i < cases; ++i) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    std::string text;
    if (const std::string error = outcome([&] { text = said(i); }); !error.empty()) text = "the test itself: " + error;
    text.copy(texts + i * most, most - 1);
    _exit(0);
  }
  std::vector<std::string> all;
  for (std::size_t i = 0; i < cases; ++i) {
    int status = 0;
    waitpid(children[i], &status, 0);
    all.emplace_back(texts + i * most);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      all.back() += fmt::format("the test itself: status {}\n", status);
  }
  munmap(memory, cases * most);
  return all;
}

bool each_line_has_one_of(const std::string& said, const std::vector<std::string>& parts) {
  std::istringstream lines(said);
  bool any = false;
  for (std::string line; std::getline(lines, line); any = true)
    if (std::ranges::none_of(parts, [&](const std::string& part) { return line.find(part) != line.npos; }))
      return false;
  return any;
}

std::string over_each_transport(const std::function<std::string(const std::string&)>& said) {
  const std::vector<std::string> transports = usable_transports();
  const auto each = at_once(transports.size(), [&](std::size_t i) { return said(transports[i]); });
  std::string all;
  for (std::size_t i = 0; i < each.size(); ++i)
    if (!each[i].empty()) all += fmt::format("{}: {}\n", transports[i], each[i]);
  return all;
}

std::vector<std::string> between_processes() {
  std::vector<std::string> names = usable_transports();
  std::erase_if(names,
                [](const std::string& n) { return transport_named(n).reach == TransportFactory::Reach::process; });
  return names;
}

std::vector<std::tuple<std::string, Rank>> transports_and_ranks(const std::vector<Rank>& all,
                                                                const std::vector<Rank>& on_hosts) {
  std::vector<std::tuple<std::string, Rank>> pairs;
  for (const std::string& name : usable_transports())
    for (const Rank r : across_hosts(name) ? on_hosts : all) pairs.emplace_back(name, r);
  return pairs;
}

}  // namespace trellis::ccl
