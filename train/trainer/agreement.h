// Makes ranks agree. All functions are collective: every rank of the world calls them.
#pragma once

#include <string>

#include "ccl/communicator.h"

namespace trellis::train {

bool any_rank(ccl::Communicator& world, bool mine);
std::string from_first(ccl::Communicator& world, std::string text);        // the text of rank 0
std::string first_fault(ccl::Communicator& world, std::string mine);       // of the first rank that has one, or empty
void refuse_together(ccl::Communicator& world, const std::string& fault);  // every rank throws what rank 0 found

// The message of the exception that the call throws; empty: it throws none.
template <class Call>
std::string fault_of(const Call& call) {
  try {
    call();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace trellis::train
