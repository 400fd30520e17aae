#include "kernels/check/kernel_trial.h"

#include <algorithm>
#include <cstring>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1  // GCC defines it by itself
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace trellis::kernels {
namespace {

constexpr std::size_t before = 192;  // so that 64 bytes or more lie in front of an operand, whatever its offset

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t around = 0;
void guard(const std::byte* from, const std::byte* to) { ASAN_POISON_MEMORY_REGION(from, to - from); }
#else
constexpr std::size_t around = 16;  // bytes beside an operand that must stay as they are
void guard(const std::byte*, const std::byte*) {}
#endif

}  // namespace

GuardedOperand::GuardedOperand(std::size_t offset, std::size_t bytes)
    : bytes_(bytes), offset_(offset % 64), store_(std::make_unique<std::byte[]>(before + bytes + around)) {
  const auto at = reinterpret_cast<std::uintptr_t>(store_.get() + before - 64);
  start_ = store_.get() + before - 64 - at % 64 + offset_;
  guard(store_.get(), start_);
  guard(start_ + bytes_ + around, store_.get() + before + bytes_ + around);
}

GuardedOperand::GuardedOperand(const GuardedOperand& other) : GuardedOperand(other.offset_, other.bytes_) {
  std::memcpy(start_ - around, other.start_ - around, bytes_ + 2 * around);
}

std::vector<std::byte> GuardedOperand::all() const { return {start_ - around, start_ + bytes_ + around}; }

KernelTrial::KernelTrial(const Kernel& kernel, std::size_t n, std::size_t offset, int sources, std::uint64_t seed,
                         Data data)
    : kernel_(kernel), n_(n), seed_(seed), data_(data) {
  for (std::size_t w = 0; w < kernel.writes.size(); ++w)
    written_.push_back(made(kernel.writes[w], offset + 3 * w, true));
  for (int r = 0; r < sources; ++r) {
    const auto type = kernel.reads[std::min<std::size_t>(static_cast<std::size_t>(r), kernel.reads.size() - 1)];
    read_.push_back(made(type, offset + 5 * static_cast<std::size_t>(r), false));
  }
}

std::vector<std::vector<std::byte>> KernelTrial::after(Body body, std::uint64_t first, bool streaming) const {
  std::vector<GuardedOperand> copies = written_;
  std::vector<void*> writes;
  std::vector<const void*> reads;
  for (const GuardedOperand& m : copies) writes.push_back(m.start());
  for (const GuardedOperand& m : read_) reads.push_back(m.start());
  body({.n = n_,
        .writes = writes.data(),
        .reads = reads.data(),
        .sources = static_cast<int>(reads.size()),
        .first = first,
        .key = random_key({.seed = seed_, .step = 3, .tensor = 5}),
        .settings = kernel_.settings,
        .streaming = streaming});
  std::vector<std::vector<std::byte>> all;
  for (const GuardedOperand& m : copies) all.push_back(m.all());
  return all;
}

std::uint64_t KernelTrial::next() { return random_word({seed_, 77}, count_++); }

GuardedOperand KernelTrial::made(DType type, std::size_t offset, bool written) {
  GuardedOperand m(offset, n_ * size_of(type));
  for (std::size_t i = 0; i < n_; ++i) {
    std::uint64_t value = next();
    if (data_ == Data::plain && is_float(type))
      value = middling(type, written ? value & ~std::uint64_t{0x100} : value);
    else if (next() % 4 != 0)
      value = special(type, value);
    std::memcpy(m.start() + i * size_of(type), &value, size_of(type));
  }
  return m;
}

// Bits of a special value or one near it: infinity, NaN, subnormal, the largest, zero; otherwise of a float near 1.
std::uint64_t KernelTrial::special(DType type, std::uint64_t random) const {
  const int bits = static_cast<int>(size_of(type)) * 8;
  if (!is_float(type)) return std::uint64_t{random % 3 == 0} << (bits - 1);
  const bool f64 = type == DType::f64;
  const int mantissa = f64 ? 52 : format_of(type).mantissa_bits + (type == DType::tf32 ? 13 : 0);
  const std::uint64_t infinity =
      f64 ? 0x7FF0'0000'0000'0000 : std::uint64_t{format_of(type).infinity()} << (type == DType::tf32 ? 13 : 0);
  const std::uint64_t sign = (random >> 8 & 1) << (bits - 1);
  const std::uint64_t fraction = (random >> 12) & ((std::uint64_t{1} << mantissa) - 1);
  const std::uint64_t one = (infinity >> 1) & ~((std::uint64_t{1} << mantissa) - 1);
  switch (random % 8) {
    case 0:
      return sign | infinity;
    case 1:
      return sign | infinity | fraction;
    case 2:
      return sign | fraction;
    case 3:
      return sign | (infinity - 1 - random / 16 % 4);
    case 4:
      return sign;
    default:
      return sign | ((one & ~((std::uint64_t{1} << mantissa) - 1)) + fraction);
  }
}

// Bits of a float between 0.5 and 2 in size, or now and then of zero. Bit 8 of `random` becomes the sign.
std::uint64_t KernelTrial::middling(DType type, std::uint64_t random) const {
  const bool f64 = type == DType::f64;
  const int unused = type == DType::tf32 ? 13 : 0, mantissa = f64 ? 52 : format_of(type).mantissa_bits + unused;
  const int bits = static_cast<int>(size_of(type)) * 8;
  const std::uint64_t infinity = f64 ? 0x7FF0'0000'0000'0000 : std::uint64_t{format_of(type).infinity()} << unused;
  const std::uint64_t one = (infinity >> 1) & ~((std::uint64_t{1} << mantissa) - 1);
  const std::uint64_t sign = (random >> 8 & 1) << (bits - 1),
                      fraction = random >> 12 & ((std::uint64_t{1} << mantissa) - 1);
  if (random % 16 == 0) return sign;
  return sign | (one - (random % 2 << mantissa) + fraction);
}

bool agrees(const Kernel& kernel) {
  if (kernel.tolerance != 0) return true;
  const int sources = kernel.many ? 3 : static_cast<int>(kernel.reads.size());
  for (const KernelTrial::Data data : {KernelTrial::Data::hostile, KernelTrial::Data::plain})
    for (std::size_t n : {0, 1, 63, 257}) {
      const KernelTrial trial(kernel, n, n % 5 * 8, sources, n, data);
      const auto expected = trial.after(kernel.truth, n, false);
      for (std::size_t i = 0; i < isa_count; ++i)
        for (const bool streaming : {false, true})
          if (cpu().has[i] && kernel.twins[i] != nullptr && trial.after(kernel.twins[i], n, streaming) != expected)
            return false;
    }
  return true;
}

}  // namespace trellis::kernels
