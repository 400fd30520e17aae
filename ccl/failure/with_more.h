// Adds to what an error says.
#pragma once

#include <exception>
#include <string>

namespace trellis::ccl {

// An error of the same type and members, whose text goes on with "; MORE", unless it ends so. One of a type that is not
// known here stays as it is.
std::exception_ptr with_more(const std::exception_ptr&, const std::string& more);

}  // namespace trellis::ccl
