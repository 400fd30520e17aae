// Settings of the transports across hosts. Every field has a documented environment variable. config.cpp alone reads
// them.
#pragma once

#include <string>

namespace trellis::ccl {

struct FabricSettings {
  // TRELLIS_PROVIDER: libfabric's, such as "efa", "tcp" or "tcp;ofi_rxm"; empty: the best that reaches other hosts.
  // FI_PROVIDER, which libfabric itself reads, limits the choice.
  std::string provider = "";
  std::string interface = "";  // TRELLIS_INTERFACE: network interface or device, such as "eth0"; empty: the best
  // NCCL_SOCKET_IFNAME or CCOM_SOCKET_IFNAME: which interfaces with IP addresses may be used, "^docker,lo"; see
  // ccl/rendezvous/interface_pattern.h. TRELLIS_INTERFACE comes first.
  std::string sockets = "";
  std::string not_over_tcp = "";  // OFI_NCCL_EXCLUDE_TCP_IF: names of interfaces that are left out of these, "lo,eth0"
  // TRELLIS_HOST: this host's name in messages; ranks with the same name share a host. Empty: found out.
  std::string host = "";
  bool tagged = false;    // TRELLIS_TAGGED: large messages as tagged messages, even where there are remote writes
  bool checksum = false;  // TRELLIS_CHECKSUM: data bear checksums, so that bits that change on the way are an error
  int rails = 1;          // TRELLIS_RAILS: endpoints over which a large message is spread, 1 to 4
  // TRELLIS_REGISTRATIONS: how many pieces of allocated or exposed memory stay registered with the fabric, 0 to 65536.
  int registrations = 256;
  // TRELLIS_INSTANCE: the type of instance whose map of network interfaces counts, such as "trn2.48xlarge", or "none";
  // empty: what this host's firmware says.
  std::string instance = "";
  std::string product = "";  // OFI_NCCL_FORCE_PRODUCT_NAME: taken for what the firmware says
};

FabricSettings fabric_from_environment();
std::string sockets_from_environment();  // `sockets` alone, for those who only meet

}  // namespace trellis::ccl
