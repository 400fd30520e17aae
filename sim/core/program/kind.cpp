#include "sim/core/program/kind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <utility>

namespace trellis::sim::core {
namespace {

std::map<std::string, Kind, std::less<>>& registry() {
  static std::map<std::string, Kind, std::less<>> all;
  return all;
}

}  // namespace

bool Call::has(Key key) const {
  for (const Attribute& a : program.attributes_of(instruction))
    if (a.key == key) return true;
  return false;
}

double Call::number(Key key, double otherwise) const {
  for (const Attribute& a : program.attributes_of(instruction))
    if (a.key == key) return a.value;
  return otherwise;
}

Registered::Registered(Kind kind) {
  std::string name = kind.name;
  if (!registry().emplace(std::move(name), std::move(kind)).second)
    throw std::logic_error("two kinds of instruction have one name");
}

const std::map<std::string, Kind, std::less<>>& kinds() { return registry(); }

const Kind& kind_named(std::string_view name) {
  const auto found = registry().find(name);
  if (found != registry().end()) return found->second;
  std::vector<std::string_view> near;
  for (const auto& [known, kind] : registry())
    if (known.find(name.substr(0, name.find('_'))) != known.npos) near.push_back(known);
  if (near.empty())
    for (const auto& [known, kind] : registry()) near.push_back(known);
  throw std::invalid_argument(fmt::format("no instruction '{}'; expected one of {}", name, fmt::join(near, ", ")));
}

std::string_view name(Engine e) {
  constexpr std::string_view names[] = {"tensor", "vector", "scalar", "gpsimd", "sync"};
  return names[static_cast<std::size_t>(e)];
}

std::string_view name(Space s) {
  constexpr std::string_view names[] = {"sbuf", "psum", "hbm"};
  return names[static_cast<std::size_t>(s)];
}

std::string_view name(Role r) {
  constexpr std::string_view names[] = {"internal", "input", "output"};
  return names[static_cast<std::size_t>(r)];
}

}  // namespace trellis::sim::core
