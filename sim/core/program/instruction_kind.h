// A kind of instruction: its operands, semantics and cost. A constant of type RegisteredInstruction registers it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/program/program.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

class CoreMemory;

// One instruction with its operands and attributes looked up, as kinds see it.
struct BoundInstruction {
  const NeuronCoreProgram& program;
  const Instruction& instruction;
  std::span<const View> outputs, inputs;

  BoundInstruction(const NeuronCoreProgram& p, const Instruction& i)
      : program(p), instruction(i), outputs(p.outputs(i)), inputs(p.inputs(i)) {}
  const View& out(std::size_t i = 0) const { return outputs[i]; }
  const View& in(std::size_t i = 0) const { return inputs[i]; }
  const CoreBuffer& buffer(const View& v) const { return program.buffers[static_cast<std::size_t>(v.buffer)]; }
  MemorySpace space(const View& v) const { return buffer(v).space; }
  bool has(Key) const;
  double number(Key, double otherwise = 0) const;
  AluOp alu(Key k = Key::op) const { return static_cast<AluOp>(number(k)); }
};

// Whether an operand is optional, and in which memories it may be.
struct OperandRule {
  std::string_view name;
  bool optional = false;
  std::uint8_t spaces = 0b011;  // bit for each Space
};
inline constexpr std::uint8_t in_sbuf = 1, in_psum = 2, in_hbm = 4, on_chip = 3, anywhere = 7;

struct KeyRule {
  Key key;
  bool required = false;
};

enum class ShapeRule : std::uint8_t {
  free,         // the kind checks it
  elementwise,  // equal rows and elements everywhere, except inputs of one element a row, which are broadcast
};

// Instructions that control the stream itself.
enum class ControlFlow : std::uint8_t { none, loop, end_loop, move, add, load };

// If the last input holds indices or an offset: the operand to which they are applied, the first input (source) or the
// first output (target).
enum class IndirectOperand : std::uint8_t { none, source, target };

struct InstructionKind {
  std::string name;
  std::string summary;  // one line
  std::vector<Engine> engines;
  std::vector<OperandRule> outputs = {}, inputs = {};
  std::vector<KeyRule> keys = {};
  ShapeRule shape = ShapeRule::free;
  int generation = 2;  // the first that has it
  bool dma = false;
  IndirectOperand indirect = IndirectOperand::none;  // a DMA moves as many rows as the last input has
  bool adds = false;                                 // the result to what the output holds
  bool sequencer = false;   // no datapath: takes the chip's semaphore.instruction; the result is visible at once
  bool background = false;  // not done by its engine: its cycles are only latency
  ControlFlow control = ControlFlow::none;
  // Throws invalid_argument if the call breaks a rule that the fields above cannot express; null: there is none.
  void (*check)(const BoundInstruction&) = nullptr;
  void (*check_on)(const BoundInstruction&, const ChipSpec&) = nullptr;  // the same for what depends on the chip
  // In cycles of the engine that runs it; row: the chip's figures for this kind and engine. Null: the row's element
  // cost times the elements of a row of the first output, or of the first input if there is no output.
  double (*cycles)(const BoundInstruction&, const CostRow&, const ChipSpec&) = nullptr;
  double (*flops)(const BoundInstruction&) = nullptr;           // of products; null: none
  void (*run)(const BoundInstruction&, CoreMemory&) = nullptr;  // null: timed only
  std::string cost = {};     // source of its time, other than figures cost.KIND.ENGINE
  std::string not_yet = {};  // what is not simulated
};

struct RegisteredInstruction {
  explicit RegisteredInstruction(InstructionKind);
};

const std::map<std::string, InstructionKind, std::less<>>& kinds();
const InstructionKind& kind_named(std::string_view);  // throws invalid_argument and lists similar names

}  // namespace trellis::sim::core
