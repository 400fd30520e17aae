// Interface of the fabrics (topologies): a Fabric computes the directed links between two chips; regular structure is
// never stored. A RegisteredFabric at namespace scope adds a kind for machine files and shapes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/figures/figures.h"

namespace trellis::sim {

using Chip = std::int32_t;

// A directed resource of which every `span`-th chip owns one: a link, a network interface, the uplink of a switch.
struct Port {
  std::string name;  // "neuronlink x+"
  double rate = 0;   // bytes a second
  Time latency = 0;
  Chip span = 1;  // chips that share it; the first of them owns it
};

struct Hop {
  std::int32_t port = 0;  // of the fabric
  Chip owner = 0;
};

// How a row of chips may be renamed without any difference: not at all, by rotation, or at will.
struct RowSymmetry {
  enum class Kind : std::uint8_t { distinct, rotate, any } kind = Kind::distinct;
  std::int32_t size = 1;
};

// A cut that divides units in two: the bytes a second that can cross it one way, and the fraction of all units on its
// smaller side.
struct Bisection {
  double rate = 0;
  double part = 0.5;
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  Chip inner() const { return inner_; }
  Chip size() const { return size_; }
  const std::vector<Chip>& dims() const { return dims_; }
  const std::vector<Port>& ports() const { return ports_; }
  // Whether each chip has its own entry into this fabric. If not, it joins only chips that have the same position in
  // the inner fabrics.
  bool attached() const { return attached_; }

  // Appends the links from one chip to the other. The chips differ only within this fabric. Variant 0 is the usual
  // route, higher ones are detours around a dead link. Returns false if there is no such variant.
  virtual bool route(Chip from, Chip to, int variant, std::vector<Hop>&) const = 0;
  virtual std::vector<RowSymmetry> alike() const = 0;
  virtual Bisection bisection() const = 0;  // of one such fabric, as near to its middle as can be

 protected:
  Fabric(Chip inner, std::vector<Chip> dims, bool attached);
  Chip place(Chip c) const { return c / inner_ % size_; }
  // The fraction of `units` units that lies below a cut through their middle.
  static double lower_part(Chip units) { return units < 2 ? 0.5 : static_cast<double>(units / 2) / units; }
  Chip at(Chip like, Chip place) const { return like + (place - this->place(like)) * inner_; }

  std::vector<Port> ports_;

 private:
  Chip inner_ = 1;  // chips of each unit that is joined
  std::vector<Chip> dims_;
  Chip size_ = 1;  // units
  bool attached_ = false;
};

// What a fabric is made from. The keys of its figures begin with its name: "neuronlink.rate".
struct FabricParameters {
  std::string name;
  std::vector<Chip> dims;
  Chip inner = 1;
  const Figures* figures = nullptr;

  bool has(std::string_view key) const { return figures->has(name + "." + std::string(key)); }
  double rate(std::string_view key) const { return figures->rate(name + "." + std::string(key)); }
  Time time(std::string_view key) const { return figures->time(name + "." + std::string(key)); }
  double number(std::string_view key) const { return figures->number(name + "." + std::string(key)); }
  std::int32_t count(std::string_view key) const { return figures->count(name + "." + std::string(key)); }
};

struct FabricFactory {
  std::string name;     // "torus"
  std::string summary;  // one line, with the meaning of dims
  std::shared_ptr<const Fabric> (*make)(const FabricParameters&) = nullptr;
  // all figures that `make` may look up, for that many dims
  std::vector<std::string> (*keys)(std::size_t dims) = nullptr;
};

struct RegisteredFabric {
  explicit RegisteredFabric(FabricFactory);
};

const std::map<std::string, FabricFactory, std::less<>>& fabric_kinds();
const FabricFactory& fabric_kind(std::string_view);  // throws invalid_argument and lists the known kinds

}  // namespace trellis::sim
