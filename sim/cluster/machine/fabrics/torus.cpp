// Torus, ring and mesh fabrics of any dimensions: links to both neighbours in every dimension, and one link in a
// dimension of 2, open or closed, as both are the same neighbour: its rate is that of all cables to it. Routes go
// dimension by dimension from the innermost on, the shorter way round, and forwards if both ways are equally short.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "sim/cluster/machine/fabric.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

constexpr const char* axis_names = "xyzwvutsrq";
constexpr std::size_t axis_name_count = 10;

std::string axis_name(std::size_t axis) {
  return axis < axis_name_count ? std::string(1, axis_names[axis]) : std::to_string(axis);
}

std::string axis_rate(std::size_t axis) { return axis_name(axis) + ".rate"; }

class Torus : public Fabric {
 public:
  Torus(const FabricParameters& r, bool closed) : Fabric(r.inner, r.dims, false), closed_(closed) {
    for (std::size_t axis = 0; axis < dims().size(); ++axis) {
      const std::string own = axis_rate(axis);
      const double rate = r.has(own) ? r.rate(own) : r.rate("rate");
      first_port_.push_back(static_cast<std::int32_t>(ports_.size()));
      for (const char* direction : {"+", "-"})
        if (*direction == '+' || dims()[axis] != 2)
          ports_.push_back({r.name + " " + axis_name(axis) + direction, rate, r.time("latency"), 1});
    }
  }

  // Variants begin with another dimension, and reverse the direction in some dimensions. A mesh has but one direction:
  // its variants are the orders of dimensions, which are equally short. The detours of route_aside() come last.
  bool route(Chip from, Chip to, int variant, std::vector<Hop>& hops) const override {
    const int axes = static_cast<int>(dims().size());
    const std::int64_t ways = closed_ ? std::int64_t{axes} << std::min(axes, 32) : axes;
    if (variant >= ways) return route_aside(from, to, static_cast<int>(variant - ways), hops);
    const int turned = closed_ ? variant >> axes : variant;
    for (int i = 0; i < axes; ++i) {
      const int axis = (i + turned) % axes;
      from = along(from, to, axis, closed_ && (variant >> axis & 1) != 0, hops);
    }
    return true;
  }

  std::vector<RowSymmetry> alike() const override {
    std::vector<RowSymmetry> all;
    for (Chip size : dims()) all.push_back({closed_ ? RowSymmetry::Kind::rotate : RowSymmetry::Kind::distinct, size});
    return all;
  }

  Bisection bisection() const override {
    Bisection least;
    for (std::size_t axis = 0; axis < dims().size(); ++axis) {
      if (dims()[axis] < 2) continue;
      const double cut =
          (closed_ && dims()[axis] > 2 ? 2.0 : 1.0) * size() / dims()[axis] * ports_[first_port_[axis]].rate;
      if (least.rate == 0 || cut < least.rate) least = {cut, lower_part(dims()[axis])};
    }
    return least;
  }

 private:
  // First steps to a neighbour in one dimension, `aside`, and completes that dimension last. Variants that step towards
  // `to`, which makes no way longer, come before those that step forwards, and then backwards.
  bool route_aside(Chip from, Chip to, int variant, std::vector<Hop>& hops) const {
    const int axes = static_cast<int>(dims().size());
    const int turned = variant % axes, aside = variant / axes % axes, side = variant / axes / axes;
    const Chip n = dims()[aside], stride = stride_of(aside), here = from / stride % n, there = to / stride % n;
    const Chip towards = (there > here ? 1 : 0) - (there < here ? 1 : 0);
    const Chip step = side == 0 ? towards : side == 1 ? 1 : -1;
    if (side > 2 || step == 0 || here + step < 0 || here + step >= n) return false;
    from = along(from, from + step * stride, aside, false, hops);
    for (int i = 0; i < axes; ++i)
      if (const int axis = (i + turned) % axes; axis != aside) from = along(from, to, axis, false, hops);
    along(from, to, aside, false, hops);
    return true;
  }

  Chip stride_of(int axis) const {
    Chip stride = inner();
    for (int i = 0; i < axis; ++i) stride *= dims()[i];
    return stride;
  }

  Chip along(Chip from, Chip to, int axis, bool other_way, std::vector<Hop>& hops) const {
    const Chip stride = stride_of(axis), n = dims()[axis];
    Chip here = from / stride % n;
    const Chip there = to / stride % n;
    if (here == there) return from;
    const Chip ahead = (there - here + n) % n;
    const bool forward = closed_ ? (ahead <= n - ahead) != other_way : there > here;
    while (here != there) {
      hops.push_back({first_port_[axis] + (forward || n == 2 ? 0 : 1), from});
      const Chip next = forward ? (here + 1 == n ? 0 : here + 1) : (here == 0 ? n - 1 : here - 1);
      from += (next - here) * stride;
      here = next;
    }
    return from;
  }

  bool closed_;
  std::vector<std::int32_t> first_port_;  // of each dimension
};

template <bool closed>
std::shared_ptr<const Fabric> make(const FabricParameters& r) {
  return std::make_shared<Torus>(r, closed);
}

std::shared_ptr<const Fabric> make_ring(const FabricParameters& r) {
  if (r.dims.size() != 1) text::refuse("a ring of {0}: expected one size, or a torus of {0}", fmt::join(r.dims, "x"));
  return make<true>(r);
}

std::vector<std::string> keys(std::size_t dims) {
  std::vector<std::string> all = {"rate", "latency"};
  for (std::size_t axis = 0; axis < dims; ++axis) all.push_back(axis_rate(axis));
  return all;
}

const RegisteredFabric torus({"torus", "a torus: 4x4, 16x32x32", make<true>, keys});
const RegisteredFabric ring({"ring", "a torus of one dimension: 64", make_ring, keys});
const RegisteredFabric mesh({"mesh", "a torus cut open: 4x4", make<false>, keys});

}  // namespace
}  // namespace trellis::sim
