#include "ccl/transports/registry.h"

#include "text/refuse.h"
#include "text/registry.h"

namespace trellis::ccl {
namespace {

text::Registry<TransportFactory>& registry() {
  static text::Registry<TransportFactory> all("transport");
  return all;
}

}  // namespace

RegisteredTransport::RegisteredTransport(TransportFactory kind) { registry().add(std::move(kind)); }

const TransportFactory& transport_named(std::string_view wanted) { return registry().named(wanted); }

std::vector<std::string> usable_transports() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : registry().entries())
    if (kind.absent == nullptr || kind.absent().empty()) names.push_back(name);
  return names;
}

std::unique_ptr<Transport> open_transport(std::shared_ptr<Store> store, const JoinOptions& j) {
  const TransportFactory& kind = transport_named(j.config.transport.empty() ? usual_transport : j.config.transport);
  if (kind.absent != nullptr)
    if (const std::string why = kind.absent(); !why.empty()) text::refuse("transport {}: {}", kind.name, why);
  return kind.open(std::move(store), j);
}

}  // namespace trellis::ccl
