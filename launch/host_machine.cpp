#include "launch/host_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace trellis::launch {
namespace {

using Cores = std::vector<const TopoObject*>;

void gather(const TopoObject& p, Cores& cores) {
  if (p.kind != TopoObject::Kind::core)
    for (const TopoObject& part : p.parts) gather(part, cores);
  else if (!usable_threads(p).empty())
    cores.push_back(&p);
}

// The cores of the smallest object of the topology that has enough of them; of several such objects, of the first.
Cores smallest_with(const TopoObject& p, std::size_t wanted) {
  Cores best = usable_cores(p);
  if (best.size() < wanted) return {};
  for (const TopoObject& part : p.parts) {
    Cores within = smallest_with(part, wanted);
    if (!within.empty() && within.size() < best.size()) best = std::move(within);
  }
  return best;
}

}  // namespace

std::vector<int> usable_threads(const TopoObject& p) {
  std::vector<int> threads;
  if (p.kind == TopoObject::Kind::thread && p.usable) threads.push_back(p.number);
  for (const TopoObject& part : p.parts) {
    const std::vector<int> within = usable_threads(part);
    threads.insert(threads.end(), within.begin(), within.end());
  }
  return threads;
}

Cores usable_cores(const TopoObject& p) {
  Cores cores;
  gather(p, cores);
  return cores;
}

std::vector<std::vector<int>> rank_threads(const TopoMachine& machine, int ranks, CoreAllocationPolicy share) {
  const auto count = static_cast<std::size_t>(ranks);
  const Cores cores =
      share == CoreAllocationPolicy::one ? smallest_with(machine.whole, count) : usable_cores(machine.whole);
  if (cores.size() < count) return {};
  const std::size_t each = share == CoreAllocationPolicy::one ? 1 : cores.size() / count;
  std::vector<std::vector<int>> all(count);
  for (std::size_t i = 0; i < count * each; ++i) {
    std::vector<int> threads = usable_threads(*cores[i]);
    if (share == CoreAllocationPolicy::one) threads.resize(1);
    all[i / each].insert(all[i / each].end(), threads.begin(), threads.end());
  }
  return all;
}

std::vector<int> threads_in_turn(const TopoMachine& machine) {
  const Cores cores = usable_cores(machine.whole);
  std::vector<int> all;
  for (std::size_t turn = 0, before = 1; before != all.size(); ++turn) {
    before = all.size();
    for (const TopoObject* core : cores)
      if (const std::vector<int> threads = usable_threads(*core); turn < threads.size()) all.push_back(threads[turn]);
  }
  return all;
}

std::string ranges(std::vector<int> numbers) {
  std::ranges::sort(numbers);
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (last != i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace trellis::launch
