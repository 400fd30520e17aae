// libfabric, opened at run time: one build uses whichever version is installed, or none.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <string>
#include <system_error>

namespace trellis::ccl::libfabric {

// The functions that the library exports. All others are reached through the objects that these return.
struct FabricLibrary {
  decltype(&fi_getinfo) getinfo = nullptr;
  decltype(&fi_freeinfo) freeinfo = nullptr;
  decltype(&fi_dupinfo) dupinfo = nullptr;
  decltype(&fi_fabric) fabric = nullptr;
  decltype(&fi_version) version = nullptr;
  decltype(&fi_strerror) strerror = nullptr;

  std::uint32_t api() const;  // version of the interface that both this build and the library know
};

const FabricLibrary& library();  // throws system_error (ELIBACC) when there is none
std::string library_absence();   // why there is none; empty: there is one

// An error of libfabric: its numbers are errno's and some of its own.
std::system_error failure(int error, const std::string& what);

// Throws for a negative result.
int checked(std::int64_t result, const char* call);

}  // namespace trellis::ccl::libfabric
