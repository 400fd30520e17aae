#include "sim/machine/fabric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <stdexcept>

namespace trellis::sim {
namespace {

std::map<std::string, FabricKind, std::less<>>& table() {
  static std::map<std::string, FabricKind, std::less<>> kinds;
  return kinds;
}

Chip product(const std::vector<Chip>& dims) {
  std::int64_t n = 1;
  for (Chip d : dims) {
    if (d < 1) throw std::invalid_argument(fmt::format("{} in {}: expected at least 1", d, fmt::join(dims, "x")));
    n *= d;
    if (n > std::numeric_limits<Chip>::max() / 4)
      throw std::invalid_argument(fmt::format("{} are too many chips", fmt::join(dims, "x")));
  }
  return static_cast<Chip>(n);
}

}  // namespace

Fabric::Fabric(Chip inner, std::vector<Chip> dims, bool attached)
    : inner_(inner), dims_(std::move(dims)), size_(product(dims_)), attached_(attached) {}

RegisteredFabric::RegisteredFabric(FabricKind kind) {
  const std::string name = kind.name;
  if (!table().emplace(name, std::move(kind)).second)
    throw std::logic_error(fmt::format("two kinds of fabric are called {}", name));
}

const std::map<std::string, FabricKind, std::less<>>& fabric_kinds() { return table(); }

const FabricKind& fabric_kind(std::string_view name) {
  if (const auto found = table().find(name); found != table().end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [each, kind] : table()) known.push_back(each);
  throw std::invalid_argument(fmt::format("no fabric is called '{}': expected {}", name, fmt::join(known, ", ")));
}

}  // namespace trellis::sim
