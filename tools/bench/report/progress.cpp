#include "tools/bench/report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "ccl/tell.h"

namespace trellis::tools {

BenchProgress::BenchProgress(std::size_t all, bool wanted) : all_(all), shown_(wanted && isatty(STDERR_FILENO) == 1) {}

void BenchProgress::next(const std::string& what) {
  ++done_;
  if (!shown_) return;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began_;
  ccl::tell("\r\033[K{}/{} {} ({:.0f} s)", done_, all_, what, passed.count());
}

void BenchProgress::clear() {
  if (shown_) ccl::tell("\r\033[K");
}

}  // namespace trellis::tools
