#include "ccl/transports/libfabric/wire/provider.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>

namespace trellis::ccl::libfabric {
namespace {

constexpr std::uint64_t to_write = FI_MSG | FI_RMA;
constexpr std::uint64_t to_tag = FI_MSG | FI_TAGGED;

Info offers(const FabricSettings& s, std::uint64_t caps) {
  const Library& fabric = library();
  const Info hints(fabric.dupinfo(nullptr));
  if (!hints) throw std::bad_alloc();
  hints->caps = caps;
  // A provider that was not asked for by name must reach other hosts.
  if (s.provider.empty()) hints->caps |= FI_LOCAL_COMM | FI_REMOTE_COMM;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  if (!s.provider.empty()) hints->fabric_attr->prov_name = strdup(s.provider.c_str());
  if (!s.interface.empty()) hints->domain_attr->name = strdup(s.interface.c_str());
  fi_info* found = nullptr;
  const int result = fabric.getinfo(fabric.api(), nullptr, nullptr, 0, hints.get(), &found);
  if (result != 0 && result != -FI_ENODATA && result != -FI_ENOSYS) throw failure(-result, "fi_getinfo");
  return Info(result == 0 ? found : nullptr);
}

bool layered(const fi_info& i) { return std::strchr(i.fabric_attr->prov_name, ';') != nullptr; }

bool stays_here(const fi_info& i) {
  return i.domain_attr->name != nullptr && std::strcmp(i.domain_attr->name, "lo") == 0;
}

// Smaller is better; the library's own order decides between equals.
auto rank_of(const FabricSettings& s, const fi_info& i) {
  const bool old_internet = i.addr_format == FI_SOCKADDR_IN6;
  return std::tuple(s.provider.empty() && layered(i), s.interface.empty() && stays_here(i), old_internet);
}

std::string present() {
  std::set<std::string> names;
  for (const std::uint64_t caps : {to_write, to_tag}) {
    const Info all = offers({}, caps);
    for (const fi_info* i = all.get(); i != nullptr; i = i->next)
      names.insert(fmt::format("{} on {}", i->fabric_attr->prov_name, i->domain_attr->name));
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool writes(const fi_info& i) { return (i.caps & FI_RMA) != 0 && i.domain_attr->cq_data_size >= 4; }

Info chosen(const FabricSettings& s) {
  for (const std::uint64_t caps : {to_write, to_tag}) {
    if (caps == to_write && s.tagged) continue;
    const Info all = offers(s, caps);
    const fi_info* best = nullptr;
    for (const fi_info* i = all.get(); i != nullptr; i = i->next) {
      if (caps == to_write && !writes(*i)) continue;
      if (best == nullptr || rank_of(s, *i) < rank_of(s, *best)) best = i;
    }
    if (best == nullptr) continue;
    Info one(library().dupinfo(best));
    if (!one) throw std::bad_alloc();
    return one;
  }
  throw std::invalid_argument(fmt::format(
      "libfabric {}.{} has no endpoint for provider '{}' on interface '{}' (empty: any) with reliable datagrams and "
      "remote writes or tagged messages; it has {}",
      FI_MAJOR(library().version()), FI_MINOR(library().version()), s.provider, s.interface, present()));
}

std::string absence() {
  if (std::string why = library_absence(); !why.empty()) return why;
  try {
    chosen({});
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace trellis::ccl::libfabric
