// What a kernel's writer needs to be told before a program runs: which rule it breaks, where.
#pragma once

#include <string>
#include <vector>

#include "sim/chip.h"
#include "sim/core/kind.h"

namespace trellis::sim::core {

// Throws invalid_argument for the first instruction that breaks a rule of the chip or of its kind, naming the
// instruction (number, kind, line), the rule and the operand.
void check(const Program&, const ChipSpec&);

// Of one operand: places, sizes and types. what: "output 0 (product)". Throws as check does, without the place.
void check_operand(const Call&, const ChipSpec&, const View&, std::string_view what, const OperandRule&);
// What the kind says of operands and attributes, and what it checks itself.
void check_call(const Call&, const ChipSpec&);

// Reads of bytes on chip, or in HBM but for inputs, that no earlier instruction writes, one line for each operand that
// does. The program is followed in an order that its semaphores allow; where it is free of races, any shows the same.
std::vector<std::string> unwritten_reads(const Program&);

// "instruction 12 (nc_matmul, line 7)"
std::string place_of(const Program&, std::size_t instruction);

}  // namespace trellis::sim::core
