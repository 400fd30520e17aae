#include "ccl/transports/libfabric/wire/provider.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ccl/rendezvous/interface_pattern.h"
#include "ccl/transports/libfabric/wire/nic_affinity.h"
#include "text/refuse.h"

namespace trellis::ccl::libfabric {
namespace {

constexpr std::uint64_t to_write = FI_MSG | FI_RMA;
constexpr std::uint64_t to_tag = FI_MSG | FI_TAGGED;

// `delivered`: only endpoints whose completions mean that the data arrived. These are preferred where a rail may be
// lost; lanes retransmit what was completed over a lost rail in any case.
Info offers(const FabricSettings& s, std::uint64_t caps, bool delivered) {
  const FabricLibrary& fabric = library();
  const Info hints(fabric.dupinfo(nullptr));
  if (!hints) throw std::bad_alloc();
  hints->caps = caps;
  // A provider that was not asked for by name must reach other hosts.
  if (s.provider.empty()) hints->caps |= FI_LOCAL_COMM | FI_REMOTE_COMM;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  if ((caps & FI_HMEM) != 0) hints->domain_attr->mr_mode |= FI_MR_HMEM;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  if (delivered) hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  if (!s.provider.empty()) hints->fabric_attr->prov_name = strdup(s.provider.c_str());
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

// The interfaces that the settings name, "eth0,eth1"; empty: any will do.
std::vector<std::string_view> named(const FabricSettings& s) {
  std::vector<std::string_view> names;
  for (std::string_view rest = s.interface; !rest.empty();) {
    names.push_back(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(names.back().size() + 1, rest.size()));
  }
  return names;
}

// True if addresses are IP addresses: then an interface leads to some hosts only.
bool has_a_network_of_its_own(const fi_info& i) {
  return i.addr_format == FI_SOCKADDR || i.addr_format == FI_SOCKADDR_IN || i.addr_format == FI_SOCKADDR_IN6;
}

// True if the domain is a network interface of the system, as for TCP, and not a device, as for EFA and verbs.
bool is_of_sockets(const fi_info& i) { return has_a_network_of_its_own(i) && if_nametoindex(i.domain_attr->name) != 0; }

bool is_allowed(const FabricSettings& s, std::string_view interface) {
  return matches_interface(s.sockets, interface) && matches_interface("^=" + s.not_over_tcp, interface);
}

bool is_wanted(const FabricSettings& s, const fi_info& i) {
  const auto names = named(s);
  if (names.empty()) return !is_of_sockets(i) || is_allowed(s, i.domain_attr->name);
  return std::ranges::find(names, std::string_view(i.domain_attr->name)) != names.end();
}

std::string bus_of(const fi_info& i) {
  if (i.nic == nullptr || i.nic->bus_attr == nullptr || i.nic->bus_attr->bus_type != FI_BUS_PCI) return "";
  const auto& at = i.nic->bus_attr->attr.pci;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", at.domain_id, at.bus_id, at.device_id, at.function_id);
}

// The instance type of this machine (null: not known), and the number of this process among the ranks of the host.
struct Here {
  const InstanceType* instance = nullptr;
  LocalRank ranks;
};

std::vector<std::size_t> nearest_first(const std::vector<FabricNic>& nics, const Here& here) {
  std::vector<std::size_t> order = by_nearness(nics);
  if (here.instance == nullptr) return order;
  return by_chips(nics, *here.instance, chips_of_process(*here.instance, here.ranks), std::move(order));
}

// Rail 0 gets the best endpoint that fits; further rails get the same kind on other interfaces.
const fi_info* of_rail(const FabricSettings& s, const std::vector<const fi_info*>& fit, int rail, const Here& here) {
  const auto better = [&s](const fi_info* a, const fi_info* b) { return rank_of(s, *a) < rank_of(s, *b); };
  const fi_info* const best = *std::ranges::min_element(fit, better);
  std::vector<const fi_info*> alike;
  std::vector<FabricNic> nics;
  for (const fi_info* i : fit) {
    const bool known = std::ranges::any_of(nics, [&](const FabricNic& n) { return n.name == i->domain_attr->name; });
    if (known || rank_of(s, *i) != rank_of(s, *best) ||
        std::strcmp(i->fabric_attr->prov_name, best->fabric_attr->prov_name) != 0)
      continue;
    alike.push_back(i);
    nics.push_back({i->domain_attr->name, bus_of(*i)});
  }
  const auto at = static_cast<std::size_t>(rail) % nics.size();
  const auto names = named(s);
  if (names.size() > 1) {
    const auto wanted = std::ranges::find(nics, names[static_cast<std::size_t>(rail) % names.size()], &FabricNic::name);
    return wanted == nics.end() ? alike[at] : alike[static_cast<std::size_t>(wanted - nics.begin())];
  }
  if (nics.size() == 1 || has_a_network_of_its_own(*best)) return best;
  return alike[nearest_first(nics, here)[at]];
}

// Tells, for an error message, which environment variables of other libraries exclude interfaces.
std::string limits(const FabricSettings& s) {
  std::string text;
  if (!s.interface.empty()) return text;
  if (!s.sockets.empty()) text += fmt::format("; NCCL_SOCKET_IFNAME or CCOM_SOCKET_IFNAME allows '{}'", s.sockets);
  if (!s.not_over_tcp.empty()) text += fmt::format("; OFI_NCCL_EXCLUDE_TCP_IF forbids '{}'", s.not_over_tcp);
  return text;
}

std::string present() {
  std::set<std::string> names;
  for (const std::uint64_t caps : {to_write, to_tag}) {
    const Info all = offers({}, caps, false);
    for (const fi_info* i = all.get(); i != nullptr; i = i->next)
      names.insert(fmt::format("{} on {}", i->fabric_attr->prov_name, i->domain_attr->name));
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool writes(const fi_info& i) { return (i.caps & FI_RMA) != 0 && i.domain_attr->cq_data_size >= 4; }

Info chosen(const FabricSettings& s, int rail, const EndpointNeeds& use) {
  const Here here{instance_of(s.instance, s.product.empty() ? product_of_this_host() : s.product), use.among};
  std::vector<std::uint64_t> wanted;
  for (const std::uint64_t caps : {to_write, to_tag}) {
    if (caps == to_write && s.tagged) continue;
    if (use.device_memory) wanted.push_back(caps | FI_HMEM);
    wanted.push_back(caps);
  }
  for (const std::uint64_t caps : wanted) {
    Info all = offers(s, caps, s.rails > 1);
    if (!all && s.rails > 1) all = offers(s, caps, false);
    std::vector<const fi_info*> fit;
    for (const fi_info* i = all.get(); i != nullptr; i = i->next)
      if (((caps & FI_RMA) == 0 || writes(*i)) && is_wanted(s, *i)) fit.push_back(i);
    if (fit.empty()) continue;
    Info one(library().dupinfo(of_rail(s, fit, rail, here)));
    if (!one) throw std::bad_alloc();
    return one;
  }
  text::refuse(
      "libfabric {}.{} has no endpoint for provider '{}' on interface '{}' (empty: any) with reliable datagrams and "
      "remote writes or tagged messages; it has {}{}",
      FI_MAJOR(library().version()), FI_MINOR(library().version()), s.provider, s.interface, present(), limits(s));
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
