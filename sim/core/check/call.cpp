#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/check/check.h"
#include "text/refuse.h"

namespace trellis::sim::core {
namespace {

void check_count(std::string_view side, std::size_t have, const std::vector<OperandRule>& rules) {
  const auto needed = static_cast<std::size_t>(std::ranges::count(rules, false, &OperandRule::optional));
  if (have >= needed && have <= rules.size()) return;
  std::string expected;
  for (const OperandRule& r : rules)
    expected += fmt::format("{}{}{}", expected.empty() ? "" : ", ", r.name, r.optional ? " (optional)" : "");
  text::refuse("operands: {} {}; expected {}", have, side, expected.empty() ? "none" : expected);
}

std::string described(std::string_view side, std::size_t at, const OperandRule& rule) {
  return fmt::format("{} {} ({})", side, at, rule.name);
}

void check_operands(const BoundInstruction& call, const ChipSpec& chip) {
  const InstructionKind& kind = *call.instruction.kind;
  check_count("outputs", call.outputs.size(), kind.outputs);
  check_count("inputs", call.inputs.size(), kind.inputs);
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    check_operand(call, chip, call.out(o), described("output", o, kind.outputs[o]), kind.outputs[o]);
    if (call.space(call.out(o)) == MemorySpace::hbm && call.buffer(call.out(o)).role == BufferRole::input)
      text::refuse("{}: role: {} is an input of the program; expected what may be written",
                   described("output", o, kind.outputs[o]), call.buffer(call.out(o)).name);
  }
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    check_operand(call, chip, call.in(i), described("input", i, kind.inputs[i]), kind.inputs[i]);
}

bool is_whole(Key key) {
  switch (key) {
    case Key::scale:
    case Key::bias:
    case Key::value:
    case Key::value1:
    case Key::rate:
    case Key::epsilon:
    case Key::duration:
      return false;
    default:
      return true;
  }
}

bool is_int32(Key key) {
  switch (key) {
    case Key::start:
    case Key::step:
    case Key::step1:
    case Key::step2:
    case Key::step3:
    case Key::rows:
    case Key::stride:
    case Key::count:
    case Key::tile_row:
    case Key::tile_column:
    case Key::tile_rows:
    case Key::tile_columns:
      return true;
    default:
      return false;
  }
}

// Attributes that cannot be negative: those of the random bits, and a duration.
bool is_natural(Key key) {
  return key == Key::seed || key == Key::tensor || key == Key::first || key == Key::pitch || key == Key::duration;
}

void check_attribute(const Attribute& a) {
  const auto words = words_of(a.key);
  if (std::isnan(a.value)) text::refuse("attribute {}: not a number", name(a.key));
  if (is_whole(a.key) && (a.value != std::floor(a.value) || std::fabs(a.value) > 0x1p53))
    text::refuse("attribute {}: {}; expected a whole number", name(a.key), a.value);
  if (is_int32(a.key) && std::fabs(a.value) >= 0x1p31)
    text::refuse("attribute {}: {}; expected 32 bits", name(a.key), a.value);
  if (is_natural(a.key) && a.value < 0) text::refuse("attribute {}: {}; expected at least 0", name(a.key), a.value);
  if (!words.empty() && (a.value < 0 || a.value >= static_cast<double>(words.size())))
    text::refuse("attribute {}: word number {}; expected one of {}", name(a.key), a.value, words.size());
}

void check_attributes(const BoundInstruction& call) {
  const InstructionKind& kind = *call.instruction.kind;
  const auto attributes = call.program.attributes_of(call.instruction);
  for (std::size_t n = 0; n < attributes.size(); ++n) {
    const Attribute& a = attributes[n];
    if (std::ranges::find(kind.keys, a.key, &KeyRule::key) == kind.keys.end()) {
      std::string known;
      for (const KeyRule& k : kind.keys) known += fmt::format("{}{}", known.empty() ? "" : ", ", name(k.key));
      text::refuse("attribute {}: unknown here; expected {}", name(a.key), known.empty() ? "none" : known);
    }
    for (std::size_t other = 0; other < n; ++other)
      if (attributes[other].key == a.key) text::refuse("attribute {}: given twice", name(a.key));
    check_attribute(a);
  }
  for (const KeyRule& k : kind.keys)
    if (k.required && !call.has(k.key)) text::refuse("attribute {}: missing", name(k.key));
}

// All operands have equal rows and equal elements, except inputs of one element a row.
void check_elementwise(const BoundInstruction& call) {
  const InstructionKind& kind = *call.instruction.kind;
  const View& first = call.out();
  for (std::size_t o = 1; o < call.outputs.size(); ++o)
    if (call.out(o).rows != first.rows || call.out(o).elements() != first.elements())
      text::refuse("{}: shape: {} x {}; expected {} x {}, as the first output has",
                   described("output", o, kind.outputs[o]), call.out(o).rows, call.out(o).elements(), first.rows,
                   first.elements());
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const View& v = call.in(i);
    const bool alike = v.elements() == first.elements() || (v.elements() == 1 && i != 0);
    if (v.rows != first.rows || !alike)
      text::refuse("{}: shape: {} x {}; expected {} x {}, as the output has", described("input", i, kind.inputs[i]),
                   v.rows, v.elements(), first.rows, first.elements());
  }
}

}  // namespace

void check_call(const BoundInstruction& call, const ChipSpec& chip) {
  const InstructionKind& kind = *call.instruction.kind;
  check_operands(call, chip);
  check_attributes(call);
  if (kind.shape == ShapeRule::elementwise) check_elementwise(call);
  if (kind.check != nullptr) kind.check(call);
  if (kind.check_on != nullptr) kind.check_on(call, chip);
}

}  // namespace trellis::sim::core
