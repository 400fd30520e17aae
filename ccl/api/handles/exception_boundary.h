// Boundary between C++ and C: turns every exception into a result and a message kept for the thread.
#pragma once

#include <exception>
#include <stdexcept>
#include <type_traits>

#include "ccl/api/c/result.h"

namespace trellis::ccl::api {

// A valid call at the wrong time.
struct UsageError : std::logic_error {
  using std::logic_error::logic_error;
};

// Carries a failure that was passed to trellis_note_failure as a result and a text.
struct ResultError : std::runtime_error {
  ResultError(trellis_result r, const char* text) : std::runtime_error(text), result(r) {}
  trellis_result result;
};

// Returns the result for an exception, and records it as this thread's last failure.
trellis_result note_failure(const std::exception_ptr&) noexcept;

trellis_result note_failure(trellis_result, const char* text) noexcept;

// Runs the body of an API function. If the body returns nothing, the result is TRELLIS_OK.
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

// Throws invalid_argument when a required pointer is null.
void require(const void* pointer, const char* name);

}  // namespace trellis::ccl::api
