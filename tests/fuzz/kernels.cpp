// Any kernel with any length, alignment and first index: every twin that runs here leaves the truth's bits, and under
// the address sanitizer touches nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "kernels/check/kernel_trial.h"
#include "kernels/check/row_kernel_trial.h"

namespace {

using namespace trellis::kernels;

// Takes numbers off the front of the input; what isn't there is 0.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::uint64_t number(int bytes) {
    std::uint64_t value = 0;
    for (; bytes > 0; --bytes, ++at_) value = value << 8 | (at_ < size_ ? data_[at_] : 0U);
    return value;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

template <class Map>
const auto& one_of(const Map& all, std::uint64_t index) {
  return std::next(all.begin(), static_cast<std::ptrdiff_t>(index % all.size()))->second;
}

void try_kernel(Input& in) {
  const Kernel& kernel = one_of(kernels(), in.number(2));
  const std::size_t n = in.number(2) % 700, offset = in.number(1) % 64;
  const std::uint64_t first = in.number(8) / 2, seed = in.number(1);
  const int sources = kernel.many ? 1 + static_cast<int>(in.number(1) % 9) : static_cast<int>(kernel.reads.size());
  const KernelTrial trial(kernel, n, offset, sources, seed);
  const auto expected = trial.after(kernel.truth, first, false);
  for (std::size_t i = 0; i < isa_count; ++i)
    for (const bool streaming : {false, true})
      if (cpu().has[i] && kernel.twins[i] != nullptr && trial.after(kernel.twins[i], first, streaming) != expected)
        std::abort();
}

void try_rows(Input& in) {
  const RowKernel& kernel = one_of(row_kernels(), in.number(1));
  const std::size_t rows = in.number(2) % 300, columns = 1 + in.number(2) % 300, offset = in.number(1) % 64;
  const std::size_t from = in.number(2) % (1 + (kernel.by_columns ? columns : rows));
  const RowKernelTrial trial(kernel, rows, columns, offset, in.number(1));
  const auto expected = trial.after(kernel.truth, kernel.settings, from);
  for (std::size_t i = 0; i < isa_count; ++i)
    if (cpu().has[i] && kernel.twins[i] != nullptr && trial.after(kernel.twins[i], kernel.settings, from) != expected)
      std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  if (in.number(1) % 4 != 0)
    try_kernel(in);
  else
    try_rows(in);
  return 0;
}
