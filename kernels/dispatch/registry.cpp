#include "kernels/dispatch/registry.h"

#include <fmt/format.h>

#include <utility>

#include "text/refuse.h"

namespace trellis::kernels {
namespace {

// Filled by the constants of types Registered and RegisteredRows, before main; only read afterwards.
template <class K>
std::map<std::string, K, std::less<>>& known() {
  static std::map<std::string, K, std::less<>> map;
  return map;
}

template <class K>
void add(std::vector<K> all) {
  for (K& kernel : all) {
    K& entry = known<K>()[kernel.name];
    kernel.twins = entry.twins;  // they may have been registered before the kernel
    entry = std::move(kernel);
  }
}

}  // namespace

template <class K, class Twin>
RegisteredAs<K, Twin>::RegisteredAs(std::vector<K> (*make)()) {
  add(make());
}

template <class K, class Twin>
RegisteredAs<K, Twin>::RegisteredAs(std::initializer_list<void (*)(std::vector<K>&)> adders) {
  std::vector<K> all;
  for (const auto adder : adders) adder(all);
  add(std::move(all));
}

template <class K, class Twin>
RegisteredAs<K, Twin>::RegisteredAs(Isa isa, const Twin* twins, std::size_t count) {
  for (const Twin* twin = twins; twin != twins + count; ++twin)
    known<K>()[twin->name.text].twins[static_cast<std::size_t>(isa)] = twin->body;
}

template struct RegisteredAs<Kernel, Twin>;
template struct RegisteredAs<RowKernel, RowTwin>;

const std::map<std::string, Kernel, std::less<>>& kernels() { return known<Kernel>(); }
const std::map<std::string, RowKernel, std::less<>>& row_kernels() { return known<RowKernel>(); }

const Kernel& kernel_named(std::string_view name) {
  if (const auto found = kernels().find(name); found != kernels().end()) return found->second;
  const std::string_view family = name.substr(0, name.find('.'));
  std::string near;
  int shown = 0;
  for (const auto& [other, kernel] : kernels())
    if (shown < 12 && (other.starts_with(family) || family.empty()))
      near += fmt::format("{}{}", shown++ == 0 ? "" : ", ", other);
  text::refuse("no kernel is called '{}'; there are {}", name, near.empty() ? "none like it" : near);
}

}  // namespace trellis::kernels
