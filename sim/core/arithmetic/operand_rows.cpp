#include "sim/core/arithmetic/operand_rows.h"

#include <cstring>

namespace trellis::sim::core {

InputRows::InputRows(CoreMemory& memory, const View& view)
    : memory_(memory),
      view_(view),
      elements_(static_cast<std::size_t>(view.elements())),
      spread_(elements_ == 1),
      direct_(view.type == DType::f32 && contiguous(view) && view.offset % 4 == 0) {
  if (!direct_) buffer_.resize(elements_);
}

const float* InputRows::row(std::int64_t r) {
  if (direct_) {
    const std::byte* at = memory_.row(view_, r);
    if (reinterpret_cast<std::uintptr_t>(at) % alignof(float) == 0) return reinterpret_cast<const float*>(at);
    buffer_.resize(elements_);
  }
  memory_.read(view_, r, buffer_.data());
  return buffer_.data();
}

ScalarOperand::ScalarOperand(CoreMemory& memory, const View* column, double number)
    : memory_(memory), column_(column), exact_(number), number_(static_cast<float>(number)) {}

float ScalarOperand::at(std::int64_t row) {
  if (column_ != nullptr) memory_.read(*column_, row, &number_);
  return number_;
}

std::int64_t ScalarOperand::whole(std::int64_t row) {
  if (column_ != nullptr) memory_.read(*column_, row, &exact_);
  return static_cast<std::int64_t>(exact_);
}

FloatRowOperand ScalarOperand::operand(std::int64_t row) {
  at(row);
  return {&number_, true};
}

OutputRows::OutputRows(const BoundInstruction& call, CoreMemory& memory, const View& view)
    : memory_(memory),
      view_(view),
      elements_(static_cast<std::size_t>(view.elements())),
      pitch_(static_cast<std::uint64_t>(call.number(Key::pitch, static_cast<double>(elements_)))),
      first_(0),
      buffer_(elements_) {
  rounding_.rounding = static_cast<kernels::Rounding>(call.number(Key::rounding));
  if (rounding_.rounding != kernels::Rounding::stochastic) return;
  rounding_.random.seed = static_cast<std::uint64_t>(call.number(Key::seed));
  rounding_.random.step = static_cast<std::uint64_t>(call.number(Key::step));
  rounding_.random.tensor = static_cast<std::uint64_t>(call.number(Key::tensor));
  first_ = static_cast<std::uint64_t>(call.number(Key::first));
  if (call.has(Key::index))
    first_ += static_cast<std::uint64_t>(memory.reg(static_cast<std::size_t>(call.number(Key::index))) *
                                         static_cast<std::int64_t>(call.number(Key::stride, 1)));
}

void OutputRows::store(std::int64_t row) { store(row, buffer_.data()); }

void OutputRows::store(std::int64_t row, const float* from) {
  rounding_.random.first = first_ + static_cast<std::uint64_t>(row) * pitch_;
  memory_.write(view_, row, from, rounding_);
}

BitRows::BitRows(CoreMemory& memory, const View& view)
    : memory_(memory),
      view_(view),
      size_(kernels::size_of(view.type)),
      bytes_(static_cast<std::size_t>(view.elements()) * size_),
      words_(static_cast<std::size_t>(view.elements())) {}

const std::uint64_t* BitRows::row(std::int64_t r) {
  memory_.read_bytes(view_, r, bytes_.data());
  for (std::size_t i = 0; i < words_.size(); ++i) {
    words_[i] = 0;
    std::memcpy(&words_[i], &bytes_[i * size_], size_);
  }
  return words_.data();
}

void BitRows::store(std::int64_t r, const std::uint64_t* from) {
  for (std::size_t i = 0; i < words_.size(); ++i) std::memcpy(&bytes_[i * size_], from + i, size_);
  memory_.write_bytes(view_, r, bytes_.data());
}

std::vector<KeyRule> with_rounding(std::vector<KeyRule> own) {
  for (const Key key :
       {Key::rounding, Key::seed, Key::tensor, Key::step, Key::first, Key::pitch, Key::index, Key::stride})
    own.push_back({key});
  return own;
}

void copy_rows(const BoundInstruction& call, CoreMemory& memory, const View& in, const View& out) {
  if (in.type == out.type) {
    const auto bytes = static_cast<std::size_t>(in.elements()) * kernels::size_of(in.type);
    const bool plain = contiguous(in) && contiguous(out);
    std::vector<std::byte> row(bytes);
    for (std::int64_t r = 0; r < out.rows; ++r) {
      if (plain) {
        std::memmove(memory.row(out, r), memory.row(in, r), bytes);
        continue;
      }
      memory.read_bytes(in, r, row.data());
      memory.write_bytes(out, r, row.data());
    }
    return;
  }
  InputRows source(memory, in);
  OutputRows sink(call, memory, out);
  for (std::int64_t r = 0; r < out.rows; ++r) sink.store(r, source.row(r));
}

void transpose_rows(const BoundInstruction& call, CoreMemory& memory) {
  const View &in = call.in(), &out = call.out();
  const std::size_t size = kernels::size_of(in.type);
  const auto rows = static_cast<std::size_t>(in.rows), columns = static_cast<std::size_t>(in.elements());
  std::vector<std::byte> tile(rows * columns * size), row(rows * size);
  for (std::size_t r = 0; r < rows; ++r) memory.read_bytes(in, static_cast<std::int64_t>(r), &tile[r * columns * size]);
  for (std::size_t c = 0; c < columns; ++c) {
    for (std::size_t r = 0; r < rows; ++r) std::memcpy(&row[r * size], &tile[(r * columns + c) * size], size);
    memory.write_bytes(out, static_cast<std::int64_t>(c), row.data());
  }
}

}  // namespace trellis::sim::core
