// Settings of a communicator, and what the launcher told this process. Every field has a documented environment
// variable. config.cpp alone reads them.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "kernels/types/dtype.h"

namespace trellis::ccl {

// Settings of the transports that connect hosts.
struct FabricSettings {
  // TRELLIS_PROVIDER: libfabric's, such as "efa", "tcp" or "tcp;ofi_rxm"; empty: the best that reaches other hosts.
  // FI_PROVIDER, which libfabric itself reads, limits the choice.
  std::string provider = "";
  std::string interface = "";  // TRELLIS_INTERFACE: network interface or device, such as "eth0"; empty: the best
  // NCCL_SOCKET_IFNAME or CCOM_SOCKET_IFNAME: which interfaces with IP addresses may be used, "^docker,lo"; see
  // ccl/rendezvous/interface_pattern.h. TRELLIS_INTERFACE comes first.
  std::string sockets = "";
  std::string not_over_tcp = "";  // OFI_NCCL_EXCLUDE_TCP_IF: names of interfaces to leave out of `sockets`, "lo,eth0"
  // TRELLIS_HOST: this host's name in messages; ranks with the same name share a host. Empty: found out.
  std::string host = "";
  bool tagged = false;    // TRELLIS_TAGGED: large messages as tagged messages, even where there are remote writes
  bool checksum = false;  // TRELLIS_CHECKSUM: data bear checksums, so that bits that change on the way are an error
  int rails = 1;          // TRELLIS_RAILS: endpoints over which a large message is spread, 1 to 4
  // TRELLIS_REGISTRATIONS: how many pieces of allocated or exposed memory stay registered with the fabric, 0 to 65536.
  int registrations = 256;
  // TRELLIS_INSTANCE: the type of instance whose map of network interfaces is used, such as "trn2.48xlarge", or "none";
  // empty: the type that this host's firmware tells.
  std::string instance = "";
  std::string product = "";  // OFI_NCCL_FORCE_PRODUCT_NAME: replaces what the firmware tells
};

struct Config {
  std::chrono::milliseconds timeout{30'000};  // TRELLIS_TIMEOUT (seconds): how long a rank waits for another one
  std::string algorithm = "";   // TRELLIS_ALGORITHM: "ring", "all_reduce=mesh,all_gather=ring"; empty: by the table
  std::string selections = "";  // TRELLIS_SELECTIONS: file of a selection table; empty: the built-in table
  // TRELLIS_MACHINE: the table's rules for it come before those for any machine. Between hosts, "host" means "fabric".
  std::string machine = "host";
  std::string transport = "";  // TRELLIS_TRANSPORT: its name (ccl/transports/registry.h); empty: the usual one
  kernels::Rounding rounding = kernels::Rounding::nearest;  // TRELLIS_ROUNDING: of narrow sums, and of f32 to `wire`
  std::uint64_t seed = 0;                                   // TRELLIS_SEED: of stochastic rounding
  kernels::DType wire = kernels::DType::f32;  // TRELLIS_WIRE: "f32", or "bf16": f32 is rounded to bf16 for sending
  // TRELLIS_DUMP: folder for the flight recorder's files, created if it is missing. They are written when a
  // communicator fails, and on SIGUSR2, SIGTERM and SIGINT. Empty: no files.
  std::string dump = "";
  // TRELLIS_SINGLE_COPY: read large buffers from the peer's own memory with process_vm_readv, where the system allows
  // it
  bool single_copy = false;
  // TRELLIS_ROUNDS: where ranks share memory, a rank that sends small messages to all others writes them in one place,
  // once, and the others read them there. All ranks follow rank 0's value.
  bool rounds = true;
  FabricSettings fabric = {};
};

// The defaults, overridden by the environment. Throws invalid_argument that names the variable, its value and the
// accepted values.
Config config_from_environment();
FabricSettings fabric_from_environment();
std::string sockets_from_environment();  // FabricSettings::sockets alone, for rendezvous without a fabric

// What torchrun, mpirun, srun or trellis launch told this process. The defaults stand for a process without a launcher.
struct LaunchedProcess {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;
  int local_ranks = 1;
  std::string address = "";  // of the host where rank 0 runs; empty: not told
  int port = 0;
  std::string secret = "";  // shared by the ranks of a job
  bool pmix = false;        // PMIx can tell where the other ranks are
  std::string by = "";      // "torchrun", "mpirun", "srun", ...; empty: no launcher, one rank alone
};

// Reads the variables of, in this order, torchrun (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE), Open MPI
// (OMPI_COMM_WORLD_*), MPICH (PMI_*, MPI_LOCAL*), Slurm in a step of srun (SLURM_*) and PMIx (PMIX_RANK). MASTER_ADDR,
// MASTER_PORT and TRELLIS_SECRET are read for all of them. Throws invalid_argument that names what is missing or
// invalid.
LaunchedProcess launched_from_environment();

// TRELLIS_SECRET, or empty: for launchers, which pass it to the ranks that they start.
std::string secret_from_environment();

}  // namespace trellis::ccl
