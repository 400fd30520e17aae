// Static checks of a program before it runs: which rule it breaks, and where.
#pragma once

#include <string>
#include <vector>

#include "sim/core/program/instruction_kind.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

// Throws invalid_argument for the first instruction that breaks a rule of the chip or of its kind. The message names
// the instruction (number, kind, line), the rule and the operand.
void check(const NeuronCoreProgram&, const ChipSpec&);

// Checks one operand's place, size and type. what: "output 0 (product)". Throws as check does, but the message does not
// name the instruction.
void check_operand(const BoundInstruction&, const ChipSpec&, const View&, std::string_view what, const OperandRule&);
// Checks operands and attributes against the kind's rules, then calls the kind's own check.
void check_call(const BoundInstruction&, const ChipSpec&);

// Finds operands that read bytes which no earlier instruction has written (on chip, or in HBM, where a program's inputs
// count as written), and operands that a register moves out of their buffer; returns a line for each. It follows the
// program in one order that the semaphores allow; without races any order gives the same result.
std::vector<std::string> unwritten_reads(const NeuronCoreProgram&);

// "instruction 12 (nc_matmul, line 7)"
std::string place_of(const NeuronCoreProgram&, std::size_t instruction);

}  // namespace trellis::sim::core
