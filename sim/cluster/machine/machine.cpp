#include "sim/cluster/machine/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "text/refuse.h"

namespace trellis::sim {
namespace {

constexpr double boundless = 9e14;  // bytes a second: effectively unlimited
constexpr int most_variants = 1 << 10;

void expect_countable(const std::string& machine, const std::string& resource, double rate) {
  if (rate > most_rate)
    text::refuse("{}: {} moves {:.4g} bytes a second: expected at most {:g}", machine, resource, rate, most_rate);
}

}  // namespace

Machine::Machine(MachineSpec spec) : spec_(std::move(spec)) {
  const Figures& f = spec_.figures;
  f.expect_times(spec_.name);
  if (!spec_.chip.empty() && f.has("cores")) {
    cores_ = f.count("cores") / std::max(1, f.count("logical.cores"));
    if (cores_ < 1)
      text::refuse("{}: {} cores, {} to a logical core: expected at least one logical core", spec_.name,
                   f.count("cores"), f.count("logical.cores"));
  }
  const auto expect_few = [&](std::int64_t ranks) {
    if (ranks > std::numeric_limits<Rank>::max() / 128) text::refuse("{} has too many ranks", spec_.name);
  };
  Chip inner = 1;
  for (const TopologyLevel& level : spec_.levels) {
    if (level.kind == "cores") {
      if (&level != &spec_.levels.front() || level.dims.size() != 1)
        text::refuse("{}: cores of {}: expected one size, before all other levels", spec_.name,
                     fmt::join(level.dims, "x"));
      cores_ = level.dims[0];
      continue;
    }
    if (level.name == spec_.cluster.name) cluster_ = static_cast<std::int32_t>(fabrics_.size());
    fabrics_.push_back(fabric_kind(level.kind).make({level.name, level.dims, inner, &f}));
    expect_few(std::int64_t{inner} * fabrics_.back()->size());
    inner *= fabrics_.back()->size();
  }
  expect_few(std::int64_t{inner} * cores_);
  ranks_ = inner * cores_;
  for (const auto& fabric : fabrics_) {
    first_port_.push_back(static_cast<std::int32_t>(ports_.size()));
    for (Port port : fabric->ports()) {
      if (port.rate < 1) refuse_idle(port.name);
      expect_countable(spec_.name, port.name, port.rate);
      if (std::int64_t{port.span} * cores_ > std::numeric_limits<Rank>::max())
        text::refuse("{}: {} is shared by too many ranks", spec_.name, port.name);
      port.span *= cores_;
      ports_.push_back(std::move(port));
    }
  }
  add_engines();
  if (ports_.size() * static_cast<std::uint64_t>(ranks_) >= no_resource)
    text::refuse("{} has too many links", spec_.name);
  add_defects();
}

void Machine::refuse_idle(const std::string& port) const {
  text::refuse("{}: {} carries nothing: expected at least a byte a second, and for a dead link a defect, as dead:0-1",
               spec_.name, port);
}

std::string Machine::title() const {
  return spec_.changes.empty() ? spec_.name : fmt::format("{} with {}", spec_.name, fmt::join(spec_.changes, " and "));
}

bool Machine::between_hosts(ResourceId r) const {
  if (cluster_ < 0) return false;
  const auto port = static_cast<std::int32_t>(r / static_cast<ResourceId>(ranks_)) - first_port_[cluster_];
  return port >= 0 && port < std::ssize(fabrics_[cluster_]->ports());
}

// Adds resources: the HBM stacks, each shared by neighbouring ranks, and each rank's DMA engines, as many of them as
// its collective cores can keep busy.
void Machine::add_engines() {
  const Figures& f = spec_.figures;
  if (spec_.chip.empty()) return;
  for (const char* key : {"hbm.rate", "dma.engine.rate"})
    if (!(f.rate(key) >= 1))
      text::refuse("{}: {} is {}: expected at least a byte a second", spec_.name, key, f.rate(key));
  if (const double rate = f.rate("hbm.rate"); rate < boundless) {
    const Rank span = std::max<Rank>(1, cores_ / std::max(1, f.count("hbm.stacks")));
    hbm_port_ = static_cast<std::int32_t>(ports_.size());
    ports_.push_back({"HBM", rate * span / cores_, 0, span});
  }
  const double engines = std::min(f.number("dma.engines") * f.number("logical.cores"),
                                  f.number("collective.cores") / cores_ * f.number("collective.engines"));
  if (const double rate = engines * f.rate("dma.engine.rate"); rate < boundless) {
    dma_port_ = static_cast<std::int32_t>(ports_.size());
    ports_.push_back({"DMA engines", rate, 0, 1});
  }
}

void Machine::add_defects() {
  for (const Defect& d : spec_.defects) {
    const auto expect_rank = [&](Rank r) {
      if (r < 0 || r >= ranks_) text::refuse("rank {}: {} has ranks 0 to {}", r, spec_.name, ranks_ - 1);
    };
    expect_rank(d.from), expect_rank(d.to);
    std::vector<ResourceId> found;
    switch (d.kind) {
      case Defect::Kind::link:
        way(d.from / cores_, d.to / cores_, fabrics_.size(), Dead::used, found);
        if (found.empty())
          text::refuse("no link leads from rank {} to {}: ranks {} to {} are of one chip", d.from, d.to,
                       d.from - d.from % cores_, d.from - d.from % cores_ + cores_ - 1);
        found.resize(1);
        break;
      case Defect::Kind::nic:
        for (std::int32_t i = 0; i < std::ssize(fabrics_); ++i) {
          if (!fabrics_[i]->attached() || (!spec_.cluster.kind.empty() && i != cluster_)) continue;
          for (std::int32_t p = first_port_[i]; p < first_port_[i] + 2; ++p)
            found.push_back(static_cast<ResourceId>(p) * ranks_ + (d.from - d.from % ports_[p].span));
        }
        if (found.empty()) text::refuse("{} has no network interfaces", spec_.name);
        break;
      case Defect::Kind::hbm:
        if (d.factor <= 0) throw std::invalid_argument("a memory's speed: expected more than 0");
        found.push_back(hbm(d.from));
        if (found[0] == no_resource) text::refuse("{} has no HBM", spec_.name);
        break;
      case Defect::Kind::rank:
        if (d.factor <= 0) throw std::invalid_argument("a straggler's speed: expected more than 0");
        slow_[d.from] = 1 / d.factor;
        if (dma_port_ >= 0) found.push_back(dma(d.from));
    }
    for (ResourceId r : found) {
      factors_[r] = d.factor;
      expect_countable(spec_.name, resource_name(r), rate(r));
      if (d.factor > 0 && d.kind != Defect::Kind::rank && rate(r) < 1) refuse_idle(resource_name(r));
    }
  }
}

std::vector<Rank> Machine::dims() const {
  std::vector<Rank> all;
  if (cores_ > 1 || fabrics_.empty()) all.push_back(cores_);
  for (const auto& fabric : fabrics_) all.insert(all.end(), fabric->dims().begin(), fabric->dims().end());
  return all;
}

std::vector<RowSymmetry> Machine::alike() const {
  if (!spec_.defects.empty()) return {{RowSymmetry::Kind::distinct, ranks_}};
  std::vector<RowSymmetry> all;
  const Rank stack = hbm_port_ < 0 ? cores_ : std::min(cores_, ports_[hbm_port_].span);
  all.push_back({RowSymmetry::Kind::any, stack});
  all.push_back({RowSymmetry::Kind::any, cores_ / stack});
  for (const auto& fabric : fabrics_) {
    const auto more = fabric->alike();
    all.insert(all.end(), more.begin(), more.end());
  }
  // The positions of a row are not interchangeable if only some of them share a resource, or if the ranks that share
  // one straddle two positions.
  Rank stride = 1;
  for (RowSymmetry& row : all) {
    for (const Port& port : ports_)
      if (port.span > stride ? port.span % (stride * row.size) != 0 : stride % port.span != 0)
        row.kind = RowSymmetry::Kind::distinct;
    stride *= row.size;
  }
  return all;
}

// The outermost fabric in which the two chips differ joins them. If it joins only chips at the same position in their
// units, the inner fabrics lead to that position first. Each fabric's section of the route avoids dead links by itself;
// where the chips of a position have no way at all, those of the next positions are tried.
bool Machine::way(Chip from, Chip to, std::size_t fabric, Dead dead, std::vector<ResourceId>& out) const {
  const auto unit = [&](Chip c, std::size_t i) { return c / fabrics_[i]->inner(); };
  while (fabric > 0 && unit(from, fabric - 1) == unit(to, fabric - 1)) --fabric;
  if (from == to || fabric == 0) return true;
  const Fabric& outer = *fabrics_[fabric - 1];
  if (outer.attached()) return through(fabric - 1, from, to, dead, out);
  const Chip inner = outer.inner();
  const std::size_t before = out.size();
  for (Chip aside = 0; aside < inner; ++aside) {
    const Chip place = (to + aside) % inner, turn = from - from % inner + place, back = to - to % inner + place;
    out.resize(before);
    if (way(from, turn, fabric - 1, dead, out) && through(fabric - 1, turn, back, dead, out) &&
        way(back, to, fabric - 1, dead, out))
      return true;
  }
  return false;
}

bool Machine::through(std::size_t fabric, Chip from, Chip to, Dead dead, std::vector<ResourceId>& out) const {
  const std::size_t before = out.size();
  std::vector<Hop> hops;
  for (int variant = 0; variant < most_variants; ++variant) {
    hops.clear();
    if (!fabrics_[fabric]->route(from, to, variant, hops)) continue;
    out.resize(before);
    for (const Hop& hop : hops) {
      const std::int32_t port = first_port_[fabric] + hop.port;
      const Rank owner = hop.owner * cores_;
      out.push_back(static_cast<ResourceId>(port) * ranks_ + (owner - owner % ports_[port].span));
    }
    if (dead == Dead::used || std::none_of(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(),
                                           [&](ResourceId r) { return rate(r) <= 0; }))
      return true;
  }
  return false;
}

void Machine::route(Rank from, Rank to, std::vector<ResourceId>& out) const {
  const Dead dead = factors_.empty() ? Dead::used : Dead::avoided;
  if (!way(from / cores_, to / cores_, fabrics_.size(), dead, out))
    text::refuse("no way that is tried leads from rank {} to {} round the dead links", from, to);
}

ResourceId Machine::hbm(Rank r) const {
  if (hbm_port_ < 0) return no_resource;
  return static_cast<ResourceId>(hbm_port_) * ranks_ + (r - r % ports_[hbm_port_].span);
}

ResourceId Machine::dma(Rank r) const {
  return dma_port_ < 0 ? no_resource : static_cast<ResourceId>(dma_port_) * ranks_ + r;
}

double Machine::rate(ResourceId r) const {
  const double usual = ports_[r / ranks_].rate;
  if (factors_.empty()) return usual;
  const auto found = factors_.find(r);
  return found == factors_.end() ? usual : usual * found->second;
}

double Machine::fastest() const {
  double most = 0;
  for (const Port& port : ports_) most = std::max(most, port.rate);
  for (const auto& [r, factor] : factors_) most = std::max(most, rate(r));
  return most;
}

std::string Machine::resource_name(ResourceId r) const {
  const Port& port = ports_[r / ranks_];
  const Rank from = owner(r);
  if (port.span < cores_) return fmt::format("{} of rank {}", port.name, from);
  const Chip chip = from / cores_, chips = std::min(port.span / cores_, this->chips() - chip);
  if (chips == 1) return fmt::format("{} of chip {}", port.name, chip);
  return fmt::format("{} of chips {} to {}", port.name, chip, chip + chips - 1);
}

double Machine::slowness(Rank r) const {
  const auto found = slow_.find(r);
  return found == slow_.end() ? 1 : found->second;
}

double Machine::memory_slowness(Rank r) const {
  const auto found = factors_.find(hbm(r));
  return found == factors_.end() ? 1 : 1 / found->second;
}

}  // namespace trellis::sim
