#include "kernels/dispatch/registry.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace trellis::kernels {
namespace {

// Filled by the constants of type Registered, before main; only read afterwards.
std::map<std::string, Kernel, std::less<>>& known() {
  static std::map<std::string, Kernel, std::less<>> map;
  return map;
}

}  // namespace

Body Kernel::twin(Isa isa) const {
  for (auto i = static_cast<std::size_t>(isa) + 1; i-- > 0;)
    if (twins[i] != nullptr) return twins[i];
  return truth;
}

Body Kernel::chosen() const { return twin(cpu().best); }

std::string_view Kernel::chosen_name() const {
  for (auto i = static_cast<std::size_t>(cpu().best) + 1; i-- > 0;)
    if (twins[i] != nullptr) return kernels::name(static_cast<Isa>(i));
  return "truth";
}

Registered::Registered(std::vector<Kernel> (*make)()) {
  for (Kernel& kernel : make()) {
    Kernel& entry = known()[kernel.name];
    kernel.twins = entry.twins;  // which may have come first
    entry = std::move(kernel);
  }
}

Registered::Registered(Isa isa, const Twin* twins, std::size_t count) {
  for (const Twin* twin = twins; twin != twins + count; ++twin)
    known()[twin->name.text].twins[static_cast<std::size_t>(isa)] = twin->body;
}

const std::map<std::string, Kernel, std::less<>>& kernels() { return known(); }

const Kernel& kernel_named(std::string_view name) {
  if (const auto found = known().find(name); found != known().end()) return found->second;
  const std::string_view family = name.substr(0, name.find('.'));
  std::string near;
  int shown = 0;
  for (const auto& [other, kernel] : known())
    if (shown < 12 && (other.starts_with(family) || family.empty()))
      near += fmt::format("{}{}", shown++ == 0 ? "" : ", ", other);
  throw std::invalid_argument(
      fmt::format("no kernel is called '{}'; there are {}", name, near.empty() ? "none like it" : near));
}

}  // namespace trellis::kernels
