#include "kernels/reduce/copy.h"

#include <cstring>

#include "kernels/dispatch/registry.h"

namespace trellis::kernels {
namespace {

void truth(const KernelArguments& s) { std::memcpy(s.writes[0], s.reads[0], s.n); }

const Registered copies([] {
  return std::vector<Kernel>{{.name = "copy.u8", .reads = {DType::u8}, .writes = {DType::u8}, .truth = truth}};
});

// memcpy is faster (bench_device) below `small`, below `cached` if the copy may stay in the caches, and from `large`
// on, where it works on several pages at once, past the caches.
constexpr std::size_t small = 256, cached = std::size_t{32} << 10, large = std::size_t{128} << 20;

}  // namespace

void copy(void* dst, const void* src, std::size_t bytes, Stores stores) {
  if (bytes == 0) return;
  if (bytes < small || bytes >= large || (stores == Stores::cached && bytes < cached)) {
    std::memcpy(dst, src, bytes);
    return;
  }
  static const Body body = kernel_named("copy.u8").chosen();
  void* const writes[] = {dst};
  const void* const reads[] = {src};
  body({.n = bytes, .writes = writes, .reads = reads, .sources = 1, .streaming = stores == Stores::streaming});
}

}  // namespace trellis::kernels
