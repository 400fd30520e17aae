// Where C++ ends: nothing thrown gets past it; it becomes a result, and a message kept for the thread.
#pragma once

#include <exception>
#include <stdexcept>
#include <type_traits>

#include "ccl/api/c/result.h"

namespace trellis::ccl::api {

// A call that is right in itself and wrong now.
struct Usage : std::logic_error {
  using std::logic_error::logic_error;
};

// A failure that came as a result already.
struct Told : std::runtime_error {
  Told(trellis_result r, const char* text) : std::runtime_error(text), result(r) {}
  trellis_result result;
};

// The result for what was thrown, noted as this thread's last failure.
trellis_result note_failure(const std::exception_ptr&) noexcept;

trellis_result note_failure(trellis_result, const char* text) noexcept;

// Runs the body of an API function: one that returns nothing is TRELLIS_OK when it returns.
template <class Body>
trellis_result guarded(Body&& body) noexcept {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body>>) {
      body();
      return TRELLIS_OK;
    } else {
      return body();
    }
  } catch (...) {
    return note_failure(std::current_exception());
  }
}

// Throws invalid_argument when a pointer that the function needs is null.
void require(const void* pointer, const char* name);

}  // namespace trellis::ccl::api
