// A simulated machine as a sketch, in which shapes and wires name the resources that they stand for. Where a large
// machine repeats, one unit is drawn in full and the others as boxes.
#pragma once

#include <vector>

#include "tools/topo/fabric_layers.h"
#include "tools/topo/sketch_layout.h"

namespace trellis::tools {

// Which of `count` chips are drawn: all of them, or the first ones and the last if there are more than `most`.
std::vector<Chip> kept(Chip count, Chip most);

class MachineSketcher {
 public:
  explicit MachineSketcher(const sim::Machine& machine) : plan_(machine) {}
  Sketch whole() const;
  const FabricLayers& plan() const { return plan_; }

 private:
  // The unit that begins at this chip and has so many layers.
  Sketch unit(std::size_t layers, Chip first, bool full) const;
  Sketch chip(Chip) const;
  Sketch box(std::size_t layers, Chip first) const;
  Sketch framed(Sketch, std::size_t layers, Chip first) const;
  bool all_full(std::size_t layer) const;

  struct Grid {  // units in rows
    Chip first = 0, stride[2] = {1, 1};
    std::vector<Chip> xs, ys;        // numbers of the shown units
    std::vector<DrawnShape> frames;  // their rectangles
    Chip chip(std::size_t x, std::size_t y) const { return first + xs[x] * stride[0] + ys[y] * stride[1]; }
    const DrawnShape& frame(std::size_t x, std::size_t y) const { return frames[y * xs.size() + x]; }
  };
  Sketch placed(std::size_t layer, Grid&) const;
  Sketch torus(std::size_t layer, Chip first) const;   // draws rings and meshes, too
  Sketch cube(std::size_t layer, Chip first) const;    // three dimensions of chips
  Sketch circle(std::size_t layer, Chip first) const;  // of a ring, a full mesh, or units that listed links join
  Sketch tree(std::size_t layer, Chip first) const;
  Sketch dragonfly(std::size_t layer, Chip first) const;
  Sketch group(std::size_t layer, Chip first) const;  // of a dragonfly

  struct Node {  // a subtree, as it was drawn
    Sketch sketch;
    Point top;  // where its link upwards begins
    std::vector<ResourceId> up;
  };
  Node leaf_unit(std::size_t layer, Chip first, bool full) const;
  Node branch(std::size_t layer, Chip first, Chip units, std::size_t height, bool full) const;
  Node joined(std::size_t layer, std::vector<Node>, Chip all, std::size_t height, Chip first) const;

  std::vector<ResourceId> direct(Chip, Chip) const;
  DrawnWire neighbours(std::size_t layer, Chip from, Chip to, std::size_t axis) const;
  std::vector<Chip> strides(const FabricLayer&) const;

  FabricLayers plan_;
};

}  // namespace trellis::tools
