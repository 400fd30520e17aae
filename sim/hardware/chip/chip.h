// ChipSpec: one accelerator generation as numbers, read from chips/*.chip. The code has no hardware constants.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/figures/figures.h"

namespace trellis::sim {

struct EngineSpec {
  double clock = 0;     // hertz
  Time latency = 0;     // from the first element read to the first result written
  double interval = 0;  // least cycles between the starts of two instructions
};

struct TensorSpec {
  int rows = 0, columns = 0;   // of the array
  double row_cycles_wide = 0;  // cycles of a moving row of 16 bits or less
  double row_cycles_f32 = 0;
  double row_cycles_f8 = 0;
  double row_cycles_mx = 0;  // 0: no MX
  double transpose_f32 = 0;  // cycles of a row of a transpose by identity, in f32
  double load_rows = 0;      // stationary rows a cycle
  double load_rows_f32 = 0;
  int passes_f32 = 1;       // loads and products that make up one in f32
  double load_exposed = 0;  // cycles of a load that no earlier product hides
  int moving_most = 0;      // most moving rows of one instruction
  Time ramp = 0;            // use of the array in this window decides whether its rate is limited; 0: it never is
  double ramp_rate = 1;     // the limited rate, as a fraction of the full one
  double ramp_least = 0;    // the fraction of the array's rows and time in use below which the limit holds
};

struct DmaSpec {
  int engines = 0, rings = 0;
  double engine_rate = 0;                           // bytes a second
  Time start_hardware = 0, start_software = 0;      // from the end of the trigger to the first byte
  Time trigger_hardware = 0, trigger_software = 0;  // on the engine that triggers
  Time stagger = 0;                                 // from the first engine's start to the last one's
  Time write_descriptor = 0;                        // to generate one descriptor in software
  Time descriptor = 0;                              // an engine's own cost of a descriptor
  Time piece = 0;                                   // least time for each contiguous run of bytes
  Time generate = 0;                                // to generate descriptors in hardware
  Time interval = 0;                                // on top of that, between two instructions of one ring
  bool prefetch = false;                            // a ring prepares the next instruction while bytes move
  double packet = 0;                                // bytes, after which another ring may take its turn
  double descriptor_most = 0;                       // bytes
  Time done = 0;                                    // from the last byte to the semaphore's change
  double compute_factor = 1;                        // of the copy rate
  double transpose_hbm = 1, transpose_sbuf = 1;
};

struct MemorySpec {
  int partitions = 0;
  double sbuf_bytes = 0, psum_bytes = 0;  // a partition
  int psum_banks = 0;
  double hbm_bytes = 0, hbm_rate = 0;  // a chip
  int hbm_stacks = 0;
};

// The cost of an instruction on an engine, in cycles: `fixed`, plus `element` for each element of a row, or `fast`
// under conditions that the instruction's kind knows.
struct CostRow {
  double element = 0, fast = 0, faster = 0, fixed = 0;
  bool there = false;
};

class ChipSpec {
 public:
  explicit ChipSpec(std::string name, Figures);  // throws invalid_argument for a missing, senseless or unknown figure

  std::string name;
  int generation = 0;
  int cores = 0, logical_cores = 0;
  std::array<EngineSpec, 5> engine;  // by core::Engine
  TensorSpec tensor;
  DmaSpec dma;
  MemorySpec memory;
  Time semaphore_latency = 0;      // from a change on one engine to the end of the wait on another
  Time semaphore_instruction = 0;  // a wait or signal that is an instruction of its own
  Time table_load = 0;             // of Scalar's function table
  Time core_barrier = 0;
  Time core_move = 0;                                                  // first byte between two cores of a pair
  double core_rate = 0;                                                // bytes a second between two cores of a pair
  bool vector_gpsimd_share = false, vector_scalar_share_psum = false;  // the two engines share a port

  CostRow cost(std::string_view kind, int engine) const;
  const Figures& figures() const { return figures_; }

 private:
  void read_engines();
  void read_tensor();
  void read_dma();
  void read_memory();
  void read_costs();
  void set_field(CostRow&, std::string_view key, std::string_view field, double cycles) const;

  Figures figures_;
  std::map<std::string, std::array<CostRow, 5>, std::less<>> costs_;  // of each kind, by engine
};

ChipSpec chip_named(std::string_view);  // of sim/chips; throws invalid_argument and lists the known names
std::vector<std::string> chip_names();

}  // namespace trellis::sim
