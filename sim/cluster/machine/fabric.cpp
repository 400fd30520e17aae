#include "sim/cluster/machine/fabric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "text/refuse.h"
#include "text/registry.h"

namespace trellis::sim {
namespace {

text::Registry<FabricFactory>& registry() {
  static text::Registry<FabricFactory> all("fabric");
  return all;
}

Chip product(const std::vector<Chip>& dims) {
  std::int64_t n = 1;
  for (Chip d : dims) {
    if (d < 1) text::refuse("{} in {}: expected at least 1", d, fmt::join(dims, "x"));
    n *= d;
    constexpr std::int64_t most = std::numeric_limits<Chip>::max() / 4;
    if (n > most) text::refuse("{} are too many chips: expected at most {}", fmt::join(dims, "x"), most);
  }
  return static_cast<Chip>(n);
}

}  // namespace

Fabric::Fabric(Chip inner, std::vector<Chip> dims, bool attached)
    : inner_(inner), dims_(std::move(dims)), size_(product(dims_)), attached_(attached) {}

RegisteredFabric::RegisteredFabric(FabricFactory kind) { registry().add(std::move(kind)); }

const std::map<std::string, FabricFactory, std::less<>>& fabric_kinds() { return registry().entries(); }

const FabricFactory& fabric_kind(std::string_view name) { return registry().named(name); }

}  // namespace trellis::sim
