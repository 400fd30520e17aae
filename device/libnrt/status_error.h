// Why a call fails: a status for the caller, and a sentence for whoever reads the log.
#pragma once

#include <fmt/format.h>

#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "device/nrt/types.h"

namespace trellis::device::nrt {

struct StatusError : std::runtime_error {
  StatusError(Status s, const std::string& why) : std::runtime_error(why), status(s) {}
  Status status;
};

template <class... Words>
[[noreturn]] void refuse(Status status, fmt::format_string<Words...> text, Words&&... words) {
  throw StatusError(status, fmt::format(text, std::forward<Words>(words)...));
}

// The text stays valid until this thread's next failure. Written to the console too unless NEURON_RT_LOG_LEVEL is
// QUIET.
void report(std::string_view function, Status, std::string_view why) noexcept;
void warn(std::string_view function, std::string_view text) noexcept;  // where the level is WARN or above
const char* last_error() noexcept;

std::string_view words(Status);

Status status_of_exception(std::string_view function) noexcept;  // of the one being handled; reports it

// Every function that a caller sees runs its work in here: nothing is thrown across the library's border.
template <class Work>
Status guarded(std::string_view function, Work&& work) noexcept {
  try {
    work();
    return Status::success;
  } catch (...) {
    return status_of_exception(function);
  }
}

// Like guarded, for a function that returns nothing or a value instead of a status.
template <class Value, class Work>
Value guarded_value(std::string_view function, Value otherwise, Work&& work) noexcept {
  try {
    return work();
  } catch (...) {
    status_of_exception(function);
    return otherwise;
  }
}

template <class Pointer>
void expect_given(Pointer* p, std::string_view what) {
  if (p == nullptr) refuse(Status::invalid, "{} is null", what);
}

}  // namespace trellis::device::nrt
