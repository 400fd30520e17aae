// Adds text to an error.
#pragma once

#include <exception>
#include <string>

namespace trellis::ccl {

// An error of the same type and members, whose text ends with "; MORE"; it is not added twice. An error of an unknown
// type stays as it is.
std::exception_ptr with_more(const std::exception_ptr&, const std::string& more);

}  // namespace trellis::ccl
