#include "sim/core/program/instruction_kind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "text/refuse.h"
#include "text/registry.h"
#include "text/words.h"

namespace trellis::sim::core {
namespace {

text::Registry<InstructionKind>& registry() {
  static text::Registry<InstructionKind> all("kind of instruction");
  return all;
}

}  // namespace

bool BoundInstruction::has(Key key) const {
  for (const Attribute& a : program.attributes_of(instruction))
    if (a.key == key) return true;
  return false;
}

double BoundInstruction::number(Key key, double otherwise) const {
  for (const Attribute& a : program.attributes_of(instruction))
    if (a.key == key) return a.value;
  return otherwise;
}

RegisteredInstruction::RegisteredInstruction(InstructionKind kind) { registry().add(std::move(kind)); }

const std::map<std::string, InstructionKind, std::less<>>& kinds() { return registry().entries(); }

const InstructionKind& kind_named(std::string_view name) {
  if (const InstructionKind* found = registry().find(name)) return *found;
  const std::vector<std::string> all = registry().names();
  std::vector<std::string> near;
  for (const std::string& known : all)
    if (known.find(name.substr(0, name.find('_'))) != known.npos) near.push_back(known);
  if (near.empty()) near = all;
  text::refuse("no instruction '{}'; expected one of {}", name, fmt::join(near, ", "));
}

std::string_view name(Engine e) { return text::word_of(e, {"tensor", "vector", "scalar", "gpsimd", "sync"}); }
std::string_view name(MemorySpace s) { return text::word_of(s, {"sbuf", "psum", "hbm"}); }
std::string_view name(BufferRole r) { return text::word_of(r, {"internal", "input", "output"}); }

}  // namespace trellis::sim::core
