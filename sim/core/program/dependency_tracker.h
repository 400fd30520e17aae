// Data dependencies: which earlier instructions must have finished before one may start, found from the memory
// accessed.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/core/program/instruction_kind.h"
#include "sim/core/program/operand_footprint.h"

namespace trellis::sim::core {

// Numbers the processors, which finish in order: the engines of all cores, then the DMA rings of all cores, `rings` for
// each core.
std::uint32_t processor_of(const NeuronCoreProgram&, const Instruction&, int rings);
std::size_t processors(const NeuronCoreProgram&, int rings);

// One instruction's access to memory.
struct InstructionAccess {
  std::uint32_t processor = 0;
  std::uint32_t number = 0;  // of the instruction on its processor, from 1
  bool writes = false;
  bool adds = false;  // a product added to the contents of PSUM
};

InstructionAccess access_of(const NeuronCoreProgram&, const Instruction&, std::uint32_t processor,
                            std::uint32_t number);

// The same rows of the view's buffer, all of their bytes.
View whole_rows(const NeuronCoreProgram&, View);

// Calls visit(view, writes) for what the instruction may touch, inputs first. If data choose the place in an operand,
// this is all bytes of its rows, or for a DMA the view itself.
template <class Visit>
void each_touched(const BoundInstruction& call, Visit visit) {
  const InstructionKind& kind = *call.instruction.kind;
  const auto reach = [&](const View& v, std::size_t n, IndirectOperand side) {
    return n == 0 && kind.indirect == side && !kind.dma ? whole_rows(call.program, v) : v;
  };
  for (std::size_t n = 0; n < call.inputs.size(); ++n) visit(reach(call.in(n), n, IndirectOperand::source), false);
  for (std::size_t n = 0; n < call.outputs.size(); ++n) visit(reach(call.out(n), n, IndirectOperand::target), true);
}

class DependencyTracker {
 public:
  // Records the access. Calls found(earlier access) for each that must have finished before this one.
  template <class Found>
  void touch(const NeuronCoreProgram& program, const View& view, const InstructionAccess& access, Found found) {
    const OperandFootprint place = footprint_of(program, view);
    for (std::int64_t b = place.first_bucket(); b <= place.last_bucket(); ++b)
      each_conflict(areas_[{place.area, b}], place, access, found);
  }

 private:
  struct Entry {
    OperandFootprint place;
    InstructionAccess access;
  };
  using Bucket = std::vector<Entry>;

  static bool waits_for(const InstructionAccess& now, const InstructionAccess& before);

  template <class Found>
  static void each_conflict(Bucket& bucket, const OperandFootprint& place, const InstructionAccess& access,
                            Found found) {
    std::size_t kept = 0;
    for (std::size_t e = 0; e < bucket.size(); ++e) {
      const Entry& entry = bucket[e];
      const bool meets = overlap(place, entry.place);
      if (meets && waits_for(access, entry.access)) found(entry.access);
      // An entry can be dropped if a write covers it, or a later read of the same processor.
      const bool same = entry.access.processor == access.processor && !entry.access.writes;
      const bool gone = meets && (access.writes ? covers(place, entry.place) : same && covers(place, entry.place));
      if (!gone) bucket[kept++] = bucket[e];
    }
    bucket.resize(kept);
    bucket.push_back({place, access});
  }

  std::map<std::pair<std::int64_t, std::int64_t>, Bucket> areas_;
};

}  // namespace trellis::sim::core
