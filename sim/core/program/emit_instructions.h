// The instructions that kernels use most, as functions of a ProgramBuilder.
#pragma once

#include "sim/core/program/program_builder.h"

namespace trellis::sim::core {

inline Attribute number(Key key, double value) { return {key, value}; }
inline Attribute alu(AluOp op, Key key = Key::op) { return {key, static_cast<double>(op)}; }
inline Attribute func(ActivationFunction f) { return {Key::func, static_cast<double>(f)}; }

// By default Sync triggers loads and GpSimd stores, so a store that waits for its result does not delay the loads after
// it.
inline void load(ProgramBuilder& b, const TensorOperand& tile, const TensorOperand& from, Engine by = Engine::sync) {
  b.add("dma_copy", by, {tile}, {from});
}
inline void store(ProgramBuilder& b, const TensorOperand& to, const TensorOperand& tile, Engine by = Engine::gpsimd) {
  b.add("dma_copy", by, {to}, {tile});
}

// product = stationary^T moving, or adds that to PSUM.
inline void matmul(ProgramBuilder& b, const TensorOperand& product, const TensorOperand& stationary,
                   const TensorOperand& moving, bool add) {
  b.add("nc_matmul", Engine::tensor, {product}, {stationary, moving}, {number(Key::accumulate, add ? 1 : 0)});
}

inline void copy(ProgramBuilder& b, const TensorOperand& to, const TensorOperand& from, Engine by = Engine::vector) {
  b.add("tensor_copy", by, {to}, {from});
}

inline void fill(ProgramBuilder& b, const TensorOperand& to, double value, Engine by = Engine::gpsimd) {
  b.add("memset", by, {to}, {}, {number(Key::value, value)});
}

inline void tensor_tensor(ProgramBuilder& b, const TensorOperand& to, const TensorOperand& x, AluOp op,
                          const TensorOperand& y, Engine by = Engine::vector) {
  b.add("tensor_tensor", by, {to}, {x, y}, {alu(op)});
}

// to = x op value, or x op the number of each row.
inline void tensor_scalar(ProgramBuilder& b, const TensorOperand& to, const TensorOperand& x, AluOp op, double value,
                          Engine by = Engine::vector) {
  b.add("tensor_scalar", by, {to}, {x}, {alu(op), number(Key::value, value)});
}
inline void tensor_scalar(ProgramBuilder& b, const TensorOperand& to, const TensorOperand& x, AluOp op,
                          const TensorOperand& column, Engine by = Engine::vector) {
  b.add("tensor_scalar", by, {to}, {x, column}, {alu(op)});
}

// to = (x op column) op1 y
inline void scalar_tensor_tensor(ProgramBuilder& b, const TensorOperand& to, const TensorOperand& x, AluOp op,
                                 const TensorOperand& column, AluOp op1, const TensorOperand& y) {
  b.add("scalar_tensor_tensor", Engine::vector, {to}, {x, y, column}, {alu(op), alu(op1, Key::op1)});
}

// column = the reduction of each row of x.
inline void reduce(ProgramBuilder& b, const TensorOperand& column, const TensorOperand& x, AluOp op,
                   Engine by = Engine::vector) {
  b.add("tensor_reduce", by, {column}, {x}, {alu(op)});
}

// to = f(x scale + bias), with numbers.
inline void activation(ProgramBuilder& b, const TensorOperand& to, const TensorOperand& x, ActivationFunction f,
                       double scale = 1, double bias = 0) {
  b.add("activation", Engine::scalar, {to}, {x}, {func(f), number(Key::scale, scale), number(Key::bias, bias)});
}

inline void transpose(ProgramBuilder& b, const TensorOperand& to, const TensorOperand& from,
                      Engine by = Engine::tensor) {
  b.add("nc_transpose", by, {to}, {from});
}

}  // namespace trellis::sim::core
