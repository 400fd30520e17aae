#include "ccl/transports/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <stdexcept>

namespace trellis::ccl {
namespace {

std::map<std::string, TransportKind, std::less<>>& table() {
  static std::map<std::string, TransportKind, std::less<>> entries;
  return entries;
}

}  // namespace

RegisteredTransport::RegisteredTransport(TransportKind kind) {
  const std::string name = kind.name;
  if (!table().emplace(name, std::move(kind)).second)
    throw std::logic_error(fmt::format("two transports are called {}", name));
}

const TransportKind& transport_named(std::string_view wanted) {
  const auto found = table().find(wanted);
  if (found != table().end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, kind] : table()) known.push_back(name);
  throw std::invalid_argument(
      fmt::format("no transport is called '{}': expected one of {}", wanted, fmt::join(known, ", ")));
}

std::vector<std::string> usable_transports() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : table())
    if (kind.absent == nullptr || kind.absent().empty()) names.push_back(name);
  return names;
}

std::unique_ptr<Transport> open_transport(std::shared_ptr<Store> store, const Joining& j) {
  const TransportKind& kind = transport_named(j.config.transport.empty() ? usual_transport : j.config.transport);
  if (kind.absent != nullptr)
    if (const std::string why = kind.absent(); !why.empty())
      throw std::invalid_argument(fmt::format("transport {}: {}", kind.name, why));
  return kind.open(std::move(store), j);
}

}  // namespace trellis::ccl
