// Chooses a libfabric provider by what it can do.
#pragma once

#include <memory>

#include "ccl/config.h"
#include "ccl/transports/libfabric/instances/instance_types.h"
#include "ccl/transports/libfabric/wire/library.h"

namespace trellis::ccl::libfabric {

struct FreeInfo {
  void operator()(fi_info* info) const { library().freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

// What an endpoint is for.
struct EndpointNeeds {
  LocalRank among = {};
  bool device_memory = false;  // messages come from memory of a device
};

// The best endpoint for the settings: of one provider, remote writes with immediate data rather than tagged messages;
// of these, one that registers memory of devices, if that is to be used; among providers, one that has reliable
// datagrams of its own rather than one layered on another; among interfaces, one that leads to other hosts. Throws
// invalid_argument that lists what there is. Rails of one process are spread over several interfaces: those that the
// settings list, or, where interfaces have no networks of their own (EFA), all, the nearest first: to this rank's chips
// on an instance whose map is known, otherwise to its cores.
Info chosen(const FabricSettings&, int rail = 0, const EndpointNeeds& = {});

// The reason why no endpoint reaches other hosts; empty if one does.
std::string absence();

bool writes(const fi_info&);  // has remote writes with immediate data of four bytes

}  // namespace trellis::ccl::libfabric
