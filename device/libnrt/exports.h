// Declares every function of the library as callers see it, so that a definition that differs does not compile.
#pragma once

#include "device/libnrt/runtime.h"
#include "device/nrt/library.h"

#define TRELLIS_NRT_DECLARE(since, result, name, parameters) \
  __attribute__((visibility("default"))) result name parameters;

namespace trellis::device::nrt {

extern "C" {
TRELLIS_NRT_FUNCTIONS(TRELLIS_NRT_DECLARE)

// Functions that libnrt itself does not have: the simulated time of a core in picoseconds, and the last failure of this
// thread in words.
__attribute__((visibility("default"))) Status trellis_nrt_time(std::uint32_t vnc, std::int64_t* picoseconds);
__attribute__((visibility("default"))) const char* trellis_nrt_last_error();
}

// The usual form of a function: runs its work with the runtime, which must have been started.
template <class Work>
Status call(std::string_view function, Work&& work) noexcept {
  return guarded(function, [&] {
    const auto runtime = running();  // held: nrt_close may come meanwhile
    work(*runtime);
  });
}

}  // namespace trellis::device::nrt
