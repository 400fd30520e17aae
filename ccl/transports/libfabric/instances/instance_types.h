// Trainium instances: which network interfaces are beside which chips, from data.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trellis::ccl::libfabric {

struct InstanceType {
  struct Nic {
    std::string bus;        // its PCI address, or the beginning of it
    std::vector<int> own;   // chips that it serves first
    std::vector<int> near;  // chips that reach it through the same PCIe switch
  };
  std::vector<std::string> names;
  int chips = 0;
  int cores_of_chip = 0;  // physical
  int usual_logical = 1;  // physical cores of a logical one
  std::vector<Nic> nics;

  // How far an interface is from a chip: 0 is its own, 1 near, 2 elsewhere.
  int distance(std::string_view bus, int chip) const;
  // The chip's place among the chips that this interface serves first, and their number.
  std::pair<std::size_t, std::size_t> turn(std::string_view bus, int chip) const;
};

// Throws invalid_argument that names the line at fault.
std::vector<InstanceType> read_instances(std::string_view text);
const std::vector<InstanceType>& instances();  // of instances.txt

// The instance that the settings name, or else the one that the firmware reports (`product`). Null: the firmware's is
// not known, or the settings say "none". Throws invalid_argument with the known names if the settings' is not known.
const InstanceType* instance_of(const std::string& setting, const std::string& product);
std::string product_of_this_host();

// Ranks of one host, and which of them this one is.
struct LocalRank {
  int rank = 0;
  int ranks = 1;
};

// The chips whose cores a process has: those that Neuron's variables leave visible, or, without them, an equal share
// for each rank. Empty: it can't be told.
std::vector<int> chips_of_process(const InstanceType&, const LocalRank&);

}  // namespace trellis::ccl::libfabric
