// The transports by name. A transport's source file registers it, for all tools and tests.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ccl/transports/open.h"

namespace trellis::ccl {

struct TransportFactory {
  enum class Reach : std::uint8_t {
    process,
    host,
    hosts
  };  // ranks are threads of one process, processes of one host, or processes of several hosts
  std::string name;
  std::string summary;  // one line
  Reach reach = Reach::host;
  // All ranks call it with stores that see each other; it returns when all have joined.
  std::unique_ptr<Transport> (*open)(std::shared_ptr<Store>, const JoinOptions&) = nullptr;
  std::string (*absent)() = nullptr;  // why it cannot be used on this machine; empty, or no function: it can
};

// An object of this type at namespace scope registers the transport.
struct RegisteredTransport {
  explicit RegisteredTransport(TransportFactory);
};

const TransportFactory& transport_named(std::string_view);  // throws invalid_argument that lists the known names
std::vector<std::string> usable_transports();               // the names of those that are not absent

}  // namespace trellis::ccl
