#include "device/program.h"
#include "device/backends.h"

#include <algorithm>
#include <stdexcept>

#include "kernels/dispatch/parallel.h"
#include "text/refuse.h"

namespace trellis::device {

void check_bindings(const std::string& program, const std::vector<ProgramOperand>& operands,
                    const std::vector<Binding>& bindings) {
  for (const ProgramOperand& o : operands) {
    const auto found = std::ranges::find(bindings, o.name, &Binding::name);
    if (found == bindings.end()) text::refuse("{}: {} is not bound", program, o.name);
    if (found->bytes != o.bytes)
      text::refuse("{}: {} is bound to {} bytes; expected {}", program, o.name, found->bytes, o.bytes);
    if (found->data == nullptr && o.bytes != 0) text::refuse("{}: {} is bound to null", program, o.name);
  }
  for (const Binding& b : bindings)
    if (std::ranges::find(operands, b.name, &ProgramOperand::name) == operands.end())
      text::refuse("{}: it has no operand {}", program, b.name);
}

const kernels::Kernel& check_launch(const KernelLaunch& launch) {
  const kernels::Kernel& kernel = kernels::kernel_named(launch.kernel);
  if (kernel.sums) text::refuse("{} sums by parts; call its own function", launch.kernel);
  const auto expect = [&](std::size_t got, std::size_t wanted, bool more, const char* what) {
    if (got == wanted || (more && got > wanted)) return;
    text::refuse("{} {} {} operands; expected {}{}", launch.kernel, what, got, wanted, more ? " or more" : "");
  };
  expect(launch.writes.size(), kernel.writes.size(), false, "writes");
  expect(launch.reads.size(), kernel.many ? std::max<std::size_t>(kernel.reads.size(), 2) : kernel.reads.size(),
         kernel.many, "reads");
  for (const void* p : launch.writes)
    if (p == nullptr && launch.n != 0) throw std::invalid_argument(launch.kernel + " writes to null");
  for (const void* p : launch.reads)
    if (p == nullptr && launch.n != 0) throw std::invalid_argument(launch.kernel + " reads from null");
  return kernel;
}

void run_launch(const KernelLaunch& launch) {
  const kernels::Kernel& kernel = check_launch(launch);
  kernels::run(kernel,
               {.n = launch.n,
                .writes = launch.writes.data(),
                .reads = launch.reads.data(),
                .sources = static_cast<int>(launch.reads.size()),
                .first = launch.first,
                .key = launch.key,
                .settings = launch.settings != nullptr ? launch.settings : kernel.settings},
               launch.threads);
}

double bytes_touched(const kernels::Kernel& kernel, const KernelLaunch& launch) {
  double bytes = 0;
  for (std::size_t i = 0; i < launch.reads.size(); ++i)
    bytes += static_cast<double>(size_of(kernel.reads[std::min(i, kernel.reads.size() - 1)]));
  for (std::size_t i = 0; i < launch.writes.size(); ++i)
    bytes += static_cast<double>(size_of(kernel.writes[i])) * (kernel.updates_operand(i) ? 2 : 1);
  return bytes * static_cast<double>(launch.n);
}

}  // namespace trellis::device
