#include "kernels/types/check_arguments.h"

#include <cstdint>

#include "text/refuse.h"

namespace trellis::kernels {
namespace {

std::uintptr_t begin(const KernelOperand& o) { return reinterpret_cast<std::uintptr_t>(o.data); }
std::uintptr_t end(const KernelOperand& o) { return begin(o) + o.bytes; }

void check_place(std::string_view kernel, const KernelOperand& o) {
  if (o.bytes == 0) return;
  if (o.data == nullptr) text::refuse("{}: {} is null and {} bytes long", kernel, o.name, o.bytes);
  if (begin(o) % o.alignment != 0)
    text::refuse("{}: {} at {:#x} is not at a multiple of {} bytes", kernel, o.name, begin(o), o.alignment);
  if (end(o) < begin(o)) text::refuse("{}: {} at {:#x} can't be {} bytes long", kernel, o.name, begin(o), o.bytes);
}

void check_apart(std::string_view kernel, const KernelOperand& written, const KernelOperand& other, bool may_be_same) {
  if (written.bytes == 0 || other.bytes == 0 || end(written) <= begin(other) || end(other) <= begin(written)) return;
  if (may_be_same && written.data == other.data && written.bytes == other.bytes) return;
  text::refuse("{}: {} at {:#x} ({} bytes) overlaps {} at {:#x} ({} bytes)", kernel, written.name, begin(written),
               written.bytes, other.name, begin(other), other.bytes);
}

}  // namespace

void check_operands(std::string_view kernel, std::span<const KernelOperand> writes,
                    std::span<const KernelOperand> reads, bool in_place) {
  for (const KernelOperand& o : writes) check_place(kernel, o);
  for (const KernelOperand& o : reads) check_place(kernel, o);
  for (std::size_t w = 0; w < writes.size(); ++w) {
    for (std::size_t other = w + 1; other < writes.size(); ++other)
      check_apart(kernel, writes[w], writes[other], false);
    for (const KernelOperand& read : reads) check_apart(kernel, writes[w], read, in_place);
  }
}

void refuse_bytes(std::string_view kernel, std::size_t n, std::size_t size) {
  text::refuse("{}: {} elements of {} bytes are more than memory can hold", kernel, n, size);
}

void refuse_threads(std::string_view kernel, int threads) {
  text::refuse("{}: {} threads; expected 1 to {}, or 0 for one a core", kernel, threads, most_threads);
}

void refuse_random(std::string_view kernel, const Random& random, std::size_t n) {
  text::refuse("{}: {} elements from index {} on pass the last index", kernel, n, random.first);
}

}  // namespace trellis::kernels
