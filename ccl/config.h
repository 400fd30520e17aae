// What a communicator can be told. Every field has a documented environment variable; config.cpp holds the only getenv.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "kernels/dtype.h"

namespace trellis::ccl {

struct Config {
  std::chrono::milliseconds timeout{30'000};  // TRELLIS_TIMEOUT (seconds): how long a rank waits for another one
  std::string algorithm = "";    // TRELLIS_ALGORITHM: "ring", "all_reduce=mesh,all_gather=ring"; else by table
  std::string selections = "";   // TRELLIS_SELECTIONS: a selection table's file; else the one built in
  std::string machine = "host";  // TRELLIS_MACHINE: whose rules of that table serve, before those of any machine
  std::string transport = "";    // TRELLIS_TRANSPORT: "loopback", "shared_memory"; else what fits
  kernels::Rounding rounding = kernels::Rounding::nearest;  // TRELLIS_ROUNDING: of narrow sums, and of f32 to `wire`
  std::uint64_t seed = 0;                                   // TRELLIS_SEED: of stochastic rounding
  kernels::DType wire = kernels::DType::f32;  // TRELLIS_WIRE: "f32", or "bf16": f32 is rounded to bf16 to be sent
  // TRELLIS_DUMP: folder for the flight recorder's files, made if need be; written when a communicator fails, and on
  // SIGUSR2, SIGTERM and SIGINT; empty: none
  std::string dump = "";
  // TRELLIS_SINGLE_COPY: read large buffers out of the peer's own memory by process_vm_readv; bench/peers/run.py tells
  // whether that is any faster here
  bool single_copy = false;
};

// The defaults, with what the environment sets. Throws invalid_argument naming the variable, its value and what it may
// be.
Config config_from_environment();

// What torchrun, mpirun, srun or trellis launch told this process, or the lack of it.
struct Launched {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;
  int local_ranks = 1;
  std::string address = "";  // of the host where rank 0 runs; empty: not told
  int port = 0;
  std::string secret = "";  // shared by the ranks of a job
  bool pmix = false;        // it can be asked where the others are
  std::string by = "";      // "torchrun", "mpirun", "srun", ...; empty: nobody, one rank alone
};

// Reads, in this order, what torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE), Open MPI
// (OMPI_COMM_WORLD_*), MPICH (PMI_*, MPI_LOCAL*), Slurm in a step of srun (SLURM_*) and PMIx (PMIX_RANK); and for all
// of them MASTER_ADDR, MASTER_PORT and TRELLIS_SECRET. Throws invalid_argument naming what is missing or makes no
// sense.
Launched launched_from_environment();

// TRELLIS_SECRET, or nothing: for who starts ranks and has to hand it on.
std::string secret_from_environment();

}  // namespace trellis::ccl
