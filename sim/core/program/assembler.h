// The assembler: a program as text, an instruction a line, and back. Printed text reads back as the same program.
//
//   program NAME cores=1
//   hbm a bf16 bytes=32768 input                      also output; neither: internal
//   sbuf x bf16 core=0 partitions=0+128 bytes=0+256   psum likewise; first + count, offset + size in each partition
//   semaphore ring4
//   dma_copy sync ring=4 x[0+128 @0 128x1] <- a[0+128 @0 128x1 /256] signal ring4+1
//   activation scalar y[0+128 @0 128x1] <- x[0+128 @0 128x1] func=exp scale=0.5 wait ring4>=1
//
// An operand is a buffer's NAME and in brackets: first row + number of rows, @offset in bytes, COUNTxSTRIDE in elements
// for each dimension, outermost first, in HBM /bytes from row to row, and rN*SCALE if register N times SCALE bytes (of
// whole elements) moves it. `:TYPE` follows where the type is not the buffer's. '#' begins a comment.
#pragma once

#include <string>
#include <string_view>

#include "sim/core/program/program.h"

namespace trellis::sim::core {

std::string print(const NeuronCoreProgram&);
std::string print(const NeuronCoreProgram&, const Instruction&);

// Throws invalid_argument, naming the line, the word and what was expected. Checks syntax only; check() has the rules.
NeuronCoreProgram parse(std::string_view text);

}  // namespace trellis::sim::core
