// Results of NCCL's API: converts results of the C API, and reports what this layer itself rejects.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <type_traits>
#include <utility>

#include "ccl/api/nccl/types.h"
#include "ccl/api/trellis.h"

namespace trellis::nccl {

struct NcclError : std::runtime_error {
  NcclError(trellis_result r, const std::string& text) : std::runtime_error(text), result(r) {}
  trellis_result result;
};

ncclResult_t result_of(trellis_result);

// Throws NcclError unless the C API's function succeeded or is in progress.
trellis_result checked(trellis_result);

trellis_result note_thrown() noexcept;  // records the current exception as this thread's last failure

// Runs the body of a function. If the body returns nothing, it has succeeded; if it returns a trellis_result, that is
// converted.
template <class Body>
ncclResult_t guarded(Body&& body) noexcept {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body>>) {
      body();
      return ncclSuccess;
    } else {
      return result_of(body());
    }
  } catch (...) {
    return result_of(note_thrown());
  }
}

template <class... T>
[[noreturn]] void refuse_argument(fmt::format_string<T...> text, T&&... values) {
  throw NcclError(TRELLIS_INVALID_ARGUMENT, fmt::format(text, std::forward<T>(values)...));
}
template <class... T>
[[noreturn]] void refuse_usage(fmt::format_string<T...> text, T&&... values) {
  throw NcclError(TRELLIS_INVALID_USAGE, fmt::format(text, std::forward<T>(values)...));
}

inline void require(const void* pointer, const char* name) {
  if (pointer == nullptr) refuse_argument("{} is NULL", name);
}

// Defines the twin of a function that is defined above in the file.
#define TRELLIS_NCCL_TWIN(name) extern "C" __attribute__((alias(#name))) decltype(name) p##name

}  // namespace trellis::nccl
