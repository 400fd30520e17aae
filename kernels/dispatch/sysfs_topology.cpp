#include "kernels/dispatch/sysfs_topology.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

#include "text/number_parsing.h"

namespace trellis::kernels {
namespace {

// The first line; empty when there is no such file.
std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "48K"; 0 when it is something else.
std::size_t bytes_in(std::string_view text) {
  const auto number = text::take_number<std::size_t>(text);
  if (!number) return 0;
  constexpr std::string_view units[] = {"", "K", "M", "G"};
  for (std::size_t i = 0; i < std::size(units); ++i)
    if (text == units[i]) return *number << 10 * i;
  return 0;
}

// The number that the text begins with: 3 of "3,35" and of "3-4".
int first_number(std::string_view text, int otherwise) {
  const int number = text::take_number<int>(text).value_or(otherwise);
  return number >= 0 ? number : otherwise;
}

std::string thread_folder(const std::string& folder, int thread) { return folder + "/cpu" + std::to_string(thread); }

// The folders of a hardware thread's caches.
std::vector<std::string> cache_folders(int thread, const std::string& folder) {
  std::vector<std::string> caches;
  for (int i = 0;; ++i) {
    std::string cache = thread_folder(folder, thread) + "/cache/index" + std::to_string(i);
    if (line_of(cache + "/level").empty()) return caches;
    caches.push_back(std::move(cache));
  }
}

int first_of_l3(int thread, const std::string& folder) {
  for (const std::string& cache : cache_folders(thread, folder))
    if (line_of(cache + "/level") == "3") return first_number(line_of(cache + "/shared_cpu_list"), 0);
  return 0;
}

}  // namespace

CacheSizes cache_sizes(int thread, const std::string& folder) {
  CacheSizes sizes;
  for (const std::string& cache : cache_folders(thread, folder)) {
    const std::string level = line_of(cache + "/level");
    if (line_of(cache + "/type") == "Instruction") continue;
    const std::size_t bytes = bytes_in(line_of(cache + "/size"));
    if (level == "1") sizes.l1_bytes = bytes;
    if (level == "2") sizes.l2_bytes = bytes;
    if (level == "3") sizes.l3_bytes = bytes;
  }
  return sizes;
}

int count_cores(const std::vector<int>& threads, const std::string& folder) {
  std::set<std::string> cores;
  for (const int thread : threads) {
    const std::string siblings = line_of(thread_folder(folder, thread) + "/topology/thread_siblings_list");
    cores.insert(siblings.empty() ? "thread " + std::to_string(thread) : siblings);
  }
  return static_cast<int>(cores.size());
}

ThreadPlace place_of(int thread, const std::string& folder) {
  const std::string topology = thread_folder(folder, thread) + "/topology/";
  return {.first_of_core = first_number(line_of(topology + "thread_siblings_list"), thread),
          .first_of_l3 = first_of_l3(thread, folder),
          .socket = first_number(line_of(topology + "physical_package_id"), 0)};
}

std::vector<int> affinity(int process) {
  // Linux refuses a mask that is smaller than its own: then a larger one is tried.
  for (int most = CPU_SETSIZE; most <= 1 << 20; most *= 4) {
    std::vector<cpu_set_t> mask(static_cast<std::size_t>(most / CPU_SETSIZE));
    const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(process, bytes, mask.data()) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    std::vector<int> threads;
    for (int t = 0; t < most; ++t)
      if (CPU_ISSET_S(t, bytes, mask.data())) threads.push_back(t);
    return threads;
  }
  throw std::system_error(errno, std::generic_category(), "cannot ask where a thread may run");
}

bool stay_on(std::span<const int> threads) {
  int most = CPU_SETSIZE;
  for (const int t : threads) most = std::max(most, (t / CPU_SETSIZE + 1) * CPU_SETSIZE);
  std::vector<cpu_set_t> mask(static_cast<std::size_t>(most / CPU_SETSIZE));
  const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
  for (const int t : threads) CPU_SET_S(t, bytes, mask.data());
  return sched_setaffinity(0, bytes, mask.data()) == 0;
}

}  // namespace trellis::kernels
