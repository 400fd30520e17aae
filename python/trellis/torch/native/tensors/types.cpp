#include "trellis/torch/native/tensors/types.h"

#include <ATen/ATen.h>

namespace trellis::process_group {

using kernels::DType;
using Op = c10d::ReduceOp;

namespace {

std::optional<DType> same_type(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return DType::f64;
    case at::kFloat:
      return DType::f32;
    case at::kHalf:
      return DType::f16;
    case at::kBFloat16:
      return DType::bf16;
    case at::kFloat8_e4m3fn:
      return DType::f8e4m3fn;
    case at::kFloat8_e5m2:
      return DType::f8e5m2;
    case at::kChar:
      return DType::i8;
    case at::kByte:
      return DType::u8;
    case at::kShort:
      return DType::i16;
    case at::kUInt16:
      return DType::u16;
    case at::kInt:
      return DType::i32;
    case at::kUInt32:
      return DType::u32;
    case at::kLong:
      return DType::i64;
    case at::kUInt64:
      return DType::u64;
    default:
      return {};
  }
}

std::string_view name_of(const Op& op) {
  constexpr std::string_view names[] = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"};
  return op.op_ < std::size(names) ? names[op.op_] : "an unknown reduction";
}

[[noreturn]] void refuse(const Op& op, at::ScalarType type) {
  C10_THROW_ERROR(ValueError, c10::str("trellis: ", name_of(op), " is not defined for ", c10::toString(type)));
}

double factor_of(const Op& op) {
  const auto* made = dynamic_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(made, "trellis: PREMUL_SUM has no factor; torch.distributed._make_nccl_premul_sum makes one");
  return made->tensor_factor.defined() ? made->tensor_factor.item<double>() : made->double_factor;
}

// Any nonzero byte of a bool is true, so sums and products are those of logic, as in NCCL's backend.
std::optional<ccl::ReduceOp> of_bools(const Op& op) {
  switch (op.op_) {
    case Op::SUM:
    case Op::MAX:
    case Op::BOR:
      return ccl::ReduceOp{kernels::Reduction::max};
    case Op::PRODUCT:
    case Op::MIN:
    case Op::BAND:
      return ccl::ReduceOp{kernels::Reduction::min};
    case Op::BXOR:
      return {};
    default:
      refuse(op, at::kBool);
  }
}

ccl::ReduceOp of_numbers(const Op& op, at::ScalarType type) {
  switch (op.op_) {
    case Op::SUM:
      return {kernels::Reduction::sum};
    case Op::PRODUCT:
      return {kernels::Reduction::prod};
    case Op::MIN:
      return {kernels::Reduction::min};
    case Op::MAX:
      return {kernels::Reduction::max};
    case Op::AVG:
      return {kernels::Reduction::avg};
    case Op::PREMUL_SUM:
      return {kernels::Reduction::scaled_sum, factor_of(op)};
    default:
      refuse(op, type);
  }
}

bool bitwise(const Op& op) { return op.op_ == Op::BAND || op.op_ == Op::BOR || op.op_ == Op::BXOR; }

}  // namespace

TorchElements moved(at::ScalarType type) {
  if (const auto same = same_type(type)) return {*same, 1};
  if (c10::isComplexType(type)) {
    const TorchElements real = moved(c10::toRealValueType(type));
    return {real.type, 2 * real.each};
  }
  return {DType::u8, c10::elementSize(type)};
}

std::optional<TorchReduction> reduction_of(at::ScalarType type, const Op& op) {
  if (type == at::kBool) {
    const auto ours = of_bools(op);
    return ours ? std::optional(TorchReduction{{DType::u8, 1}, *ours}) : std::nullopt;
  }
  if (c10::isIntegralType(type, false)) {
    if (bitwise(op)) return {};
    if (op.op_ == Op::AVG || op.op_ == Op::PREMUL_SUM) refuse(op, type);
  }
  if (c10::isComplexType(type)) {
    if (op.op_ == Op::PRODUCT) return {};
    if (op.op_ == Op::MIN || op.op_ == Op::MAX) refuse(op, type);
  } else if (!same_type(type)) {
    refuse(op, type);
  }
  return TorchReduction{moved(type), of_numbers(op, type)};
}

at::Tensor folded(const at::Tensor& blocks, const Op& op) {
  at::Tensor result = blocks.select(0, 0).clone();
  for (std::int64_t i = 1; i < blocks.size(0); ++i) {
    const at::Tensor next = blocks.select(0, i);
    if (op.op_ == Op::BAND)
      result.bitwise_and_(next);
    else if (op.op_ == Op::BOR)
      result.bitwise_or_(next);
    else if (op.op_ == Op::BXOR)
      result.bitwise_xor_(next);
    else
      result.mul_(next);
  }
  return result;
}

}  // namespace trellis::process_group
