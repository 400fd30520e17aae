#include "train/whole/check.h"

#include <fmt/format.h>

#include <algorithm>

namespace trellis::train {
namespace {

// What the other ends of an exchange must agree with.
std::string terms(const Exchange& e) {
  std::string text = fmt::format("{} over {}", name(e.kind), name(e.axis));
  if (e.kind == Exchange::Kind::all_reduce) text += fmt::format(" by {} {}", kernels::name(e.reduction), e.factor);
  for (const Transfer& t : e.transfers) text += fmt::format(", {} {}", t.count, kernels::name(t.type));
  return text;
}

bool is_message(const Exchange& e) { return e.kind == Exchange::Kind::send || e.kind == Exchange::Kind::receive; }

// Whether all stages, or the first and the last one, take part.
bool joins_stages(const Exchange& e) { return e.axis == Axis::pipeline || e.axis == Axis::tied; }

class Proof {
 public:
  Proof(const std::vector<const Program*>& stages, const Visit& visit)
      : stages_(stages), visit_(visit), at_(stages.size(), 0) {}

  std::string run() {
    bool moved = true;
    while (moved && fault_.empty()) {
      moved = false;
      for (std::size_t s = 0; s < stages_.size() && fault_.empty(); ++s)
        while (fault_.empty() && now(s) != nullptr && step(s)) moved = true;
    }
    for (std::size_t s = 0; s < stages_.size() && fault_.empty(); ++s)
      if (const Operation* o = now(s)) fault_ = stuck(s, *o);
    return fault_;
  }

 private:
  const Operation* now(std::size_t s) const {
    return at_[s] < stages_[s]->operations.size() ? &stages_[s]->operations[at_[s]] : nullptr;
  }

  bool step(std::size_t s) {
    const Operation& o = *now(s);
    if (o.kind != Operation::Kind::exchange || !joins_stages(o.exchange)) return said(s), ++at_[s], true;
    return is_message(o.exchange) ? message(s, o) : together(s, o);
  }

  bool message(std::size_t s, const Operation& o) {
    const auto peer = static_cast<std::size_t>(o.exchange.peer);
    if (peer >= stages_.size() || peer == s) return fail(s, o, "its other end is no other stage");
    const Operation* other = now(peer);
    if (other == nullptr) return fail(s, o, fmt::format("stage {} has ended", peer));
    if (other->kind != Operation::Kind::exchange || !is_message(other->exchange)) return false;
    const Exchange &a = o.exchange, &b = other->exchange;
    if (static_cast<std::size_t>(b.peer) != s || a.kind == b.kind) return false;
    const Transfer &x = a.transfers.at(0), &y = b.transfers.at(0);
    if (a.label != b.label || x.count != y.count || x.type != y.type)
      return fail(s, o,
                  fmt::format("stage {} does {} ({}, label {}) and not label {}", peer, other->name, terms(b), b.label,
                              a.label));
    said(a.kind == Exchange::Kind::send ? s : peer);
    ++at_[s], ++at_[peer];
    return true;
  }

  // All stages of the axis must be at their end of it.
  bool together(std::size_t s, const Operation& o) {
    std::vector<std::size_t> members;
    for (std::size_t m = 0; m < stages_.size(); ++m)
      if (o.exchange.axis == Axis::pipeline || m == 0 || m + 1 == stages_.size()) members.push_back(m);
    for (std::size_t m : members) {
      const Operation* other = now(m);
      if (other == nullptr) return fail(s, o, fmt::format("stage {} has ended", m));
      if (other->kind != Operation::Kind::exchange || is_message(other->exchange) ||
          other->exchange.axis != o.exchange.axis)
        return false;
      if (terms(other->exchange) != terms(o.exchange))
        return fail(
            s, o,
            fmt::format("stage {} does {} ({}) and not {}", m, other->name, terms(other->exchange), terms(o.exchange)));
    }
    said(members[0]);
    for (std::size_t m : members) ++at_[m];
    return true;
  }

  void said(std::size_t s) const {
    if (visit_) visit_(s, at_[s]);
  }

  bool fail(std::size_t s, const Operation& o, const std::string& why) {
    fault_ = fmt::format("stage {}, operation {} ({}): {}", s, at_[s], o.name, why);
    return false;
  }

  std::string stuck(std::size_t s, const Operation& o) const {
    return fmt::format(
        "stage {} waits for ever at operation {} ({}: {}); every other stage that has not ended waits, too", s, at_[s],
        o.name, terms(o.exchange));
  }

  const std::vector<const Program*>& stages_;
  const Visit& visit_;
  std::vector<std::size_t> at_;
  std::string fault_;
};

// Tickets are begun once and waited for once, in that order.
std::string check_tickets(const Program& p, std::size_t stage) {
  std::vector<int> open;
  for (const Operation& o : p.operations) {
    if (o.ticket == 0) continue;
    if (o.kind == Operation::Kind::exchange) {
      open.push_back(o.ticket);
    } else if (std::erase(open, o.ticket) != 1) {
      return fmt::format("stage {}: {} waits for what has not begun", stage, o.name);
    }
  }
  return open.empty() ? "" : fmt::format("stage {}: ticket {} is never waited for", stage, open.front());
}

std::string compared(const Program& a, const Program& b, std::size_t stage, Rank rank) {
  const std::size_t n = std::min(a.operations.size(), b.operations.size());
  for (std::size_t i = 0; i < n; ++i) {
    const Operation &x = a.operations[i], &y = b.operations[i];
    const bool same = x.kind == y.kind && x.ticket == y.ticket &&
                      (x.kind != Operation::Kind::exchange || terms(x.exchange) == terms(y.exchange));
    if (!same)
      return fmt::format("stage {}, operation {}: {} on its first rank and {} on rank {}", stage, i, x.name, y.name,
                         rank);
  }
  if (a.operations.size() == b.operations.size()) return "";
  return fmt::format("stage {}: {} operations on its first rank and {} on rank {}", stage, a.operations.size(),
                     b.operations.size(), rank);
}

}  // namespace

std::vector<Step> stages_of(const Config& config, Rank world) {
  const Derived derived = derive(config, world);
  const Mesh mesh(derived.mesh, config.wiring);
  std::vector<Step> stages;
  for (Rank p = 0; p < derived.mesh.pipeline; ++p) stages.push_back(lay_out(config, world, mesh.rank({.pipeline = p})));
  return stages;
}

std::string check_pipeline(const std::vector<const Program*>& stages) { return walk_pipeline(stages, {}); }

std::string walk_pipeline(const std::vector<const Program*>& stages, const Visit& visit) {
  for (std::size_t s = 0; s < stages.size(); ++s)
    if (std::string fault = check_tickets(*stages[s], s); !fault.empty()) return fault;
  return Proof(stages, visit).run();
}

std::string check_classes(const Config& config, Rank world, const std::vector<Step>& stages) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const MeshShape& shape = stages[s].mesh.shape();
    if (shape.tensor == 1 && shape.data == 1) continue;
    const Rank corner =
        stages[s].mesh.rank({.pipeline = static_cast<Rank>(s), .data = shape.data - 1, .tensor = shape.tensor - 1});
    const Step other = lay_out(config, world, corner);
    if (std::string fault = compared(stages[s].program, other.program, s, corner); !fault.empty()) return fault;
  }
  return "";
}

std::string check_step(const Config& config, Rank world, const std::vector<Step>& stages) {
  std::vector<const Program*> programs;
  for (const Step& s : stages) programs.push_back(&s.program);
  if (std::string fault = check_pipeline(programs); !fault.empty()) return fault;
  return check_classes(config, world, stages);
}

}  // namespace trellis::train
