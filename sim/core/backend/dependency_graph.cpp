#include "sim/core/backend/dependency_graph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "sim/core/program/dependency_tracker.h"

namespace trellis::sim::core {
namespace {

constexpr std::size_t most_entries = 256;  // of a bucket; more are joined into one box
constexpr int tile_shift = 12;             // log2 of the bytes of a bucket of a buffer on chip

struct Entry {
  OperandFootprint box;
  std::uint32_t instruction = 0;
};

struct Bucket {
  std::vector<Entry> writers, readers;  // accesses that no later write covers
};

class Hazards {
 public:
  Hazards(const UnscheduledProgram& draft, const std::vector<bool>& unordered)
      : draft_(draft), unordered_(unordered), seen_(draft.program.instructions.size(), none) {}

  DependencyGraph all() {
    const NeuronCoreProgram& p = draft_.program;
    graph_.first.reserve(p.instructions.size() + 1);
    auto follow = draft_.follows.begin(), after = draft_.after.begin();
    std::uint32_t kept = none;
    for (std::uint32_t at = 0; at < p.instructions.size(); ++at) {
      graph_.first.push_back(static_cast<std::uint32_t>(graph_.earlier.size()));
      each_touched(BoundInstruction(p, p.instructions[at]),
                   [&](const View& v, bool writes) { writes ? write(v, at) : read(v, at); });
      for (; follow != draft_.follows.end() && follow->first == at; ++follow) found(at, follow->second);
      for (; after != draft_.after.end() && after->first == at; ++after) found(at, after->second);
      if (!draft_.in_order[at]) continue;
      if (kept != none) found(at, kept);
      kept = at;
    }
    graph_.first.push_back(static_cast<std::uint32_t>(graph_.earlier.size()));
    return std::move(graph_);
  }

 private:
  static constexpr std::uint32_t none = ~0U;

  OperandFootprint box_of(const View& v) const {
    OperandFootprint box = footprint_of(draft_.program, v);
    const auto b = static_cast<std::size_t>(v.buffer);
    const CoreBuffer& buffer = draft_.program.buffers[b];
    if (buffer.space == MemorySpace::hbm || draft_.placed[b]) return box;
    box.area = -1'000 - v.buffer;  // it has no place yet, so it shares no memory
    box.shift = tile_shift;
    return box;
  }

  void read(const View& v, std::uint32_t at) {
    each_bucket(v, [&](Bucket& bucket, const OperandFootprint& box) {
      for (const Entry& e : bucket.writers)
        if (overlap(box, e.box)) found(at, e.instruction);
      bucket.readers.push_back({box, at});
    });
  }

  void write(const View& v, std::uint32_t at) {
    each_bucket(v, [&](Bucket& bucket, const OperandFootprint& box) {
      const bool all = bucket.readers.size() + bucket.writers.size() > most_entries;
      const auto drop = [&](const Entry& e) {
        if (!all && !overlap(box, e.box)) return false;
        found(at, e.instruction);
        return all || covers(box, e.box);
      };
      std::erase_if(bucket.readers, drop);
      if (!all) {
        std::erase_if(bucket.writers, drop);
        bucket.writers.push_back({box, at});
        return;
      }
      OperandFootprint whole = box;  // replaces all earlier writes in the bucket
      for (const Entry& e : bucket.writers) {
        found(at, e.instruction);
        whole.first = std::min(whole.first, e.box.first);
        whole.last = std::max(whole.last, e.box.last);
      }
      whole.stride = -1;  // unlike any other's: overlap() then compares spans only
      bucket.writers.assign(1, {whole, at});
    });
  }

  template <class Visit>
  void each_bucket(const View& v, Visit visit) {
    if (unordered_[static_cast<std::size_t>(v.buffer)]) return;
    const OperandFootprint box = box_of(v);
    for (std::int64_t b = box.first_bucket(); b <= box.last_bucket(); ++b)
      visit(buckets_[(static_cast<std::uint64_t>(box.area) << 24) ^ static_cast<std::uint64_t>(b)], box);
  }

  void found(std::uint32_t at, std::uint32_t earlier) {
    if (earlier == at || seen_[earlier] == at) return;
    seen_[earlier] = at;
    graph_.earlier.push_back(earlier);
  }

  const UnscheduledProgram& draft_;
  const std::vector<bool>& unordered_;
  std::vector<std::uint32_t> seen_;  // of each instruction: the last one that depends on it
  std::unordered_map<std::uint64_t, Bucket> buckets_;
  DependencyGraph graph_;
};

}  // namespace

std::vector<bool> unordered_buffers(const NeuronCoreProgram& p) {
  std::vector<bool> read(p.buffers.size(), false), indexed = read;
  std::vector<std::vector<OperandFootprint>> written(p.buffers.size());
  for (const Instruction& i : p.instructions) {
    for (const View& v : p.inputs(i)) read[static_cast<std::size_t>(v.buffer)] = true;
    for (const View& v : p.outputs(i)) {
      const auto b = static_cast<std::size_t>(v.buffer);
      if (p.buffers[b].space != MemorySpace::hbm) continue;
      written[b].push_back(footprint_of(p, v));
      if (v.index >= 0) indexed[b] = true;
    }
  }
  std::vector<bool> unordered(p.buffers.size(), false);
  for (std::size_t b = 0; b < unordered.size(); ++b)
    unordered[b] = p.buffers[b].space == MemorySpace::hbm &&
                   (written[b].empty() || (!read[b] && !indexed[b] && !any_overlap(std::move(written[b]))));
  return unordered;
}

DependencyGraph dependency_graph(const UnscheduledProgram& draft, const std::vector<bool>& unordered) {
  return Hazards(draft, unordered).all();
}

}  // namespace trellis::sim::core
