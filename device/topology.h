// The machine that a device is part of: its chips and cores, and what joins them.
#pragma once

#include <string>
#include <vector>

namespace trellis::device {

// A direct connection from one chip to another.
struct Link {
  int from = 0, to = 0;
  std::string name;             // "neuronlink x+"
  double bytes_per_second = 0;  // one way; 0: unknown
};

struct Nic {
  std::string name;
  int chip = 0;                 // the first chip that it serves
  double bytes_per_second = 0;  // one way; 0: unknown
};

// Cores are logical ones: what programs and ranks run on.
struct Topology {
  std::string machine;
  std::string chip;  // "trn2"; of the host, its instruction set
  int chips = 1;
  int cores = 1;             // of all chips
  int physical_of_core = 1;  // physical cores that make up one
  int core = 0;              // this device's, among all
  int visible = 1;           // cores that this process may open
  double memory_bytes = 0;   // of one core
  std::vector<Link> links = {};
  std::vector<Nic> nics = {};
  std::vector<std::string> unknown = {};  // what could not be found out, and why

  int cores_of_chip() const { return cores / chips; }
  int chip_of_core() const { return core / cores_of_chip(); }
};

}  // namespace trellis::device
