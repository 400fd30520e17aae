// Which network interfaces a pattern selects, in NCCL's grammar.
#pragma once

#include <string_view>

namespace trellis::ccl {

// "eth,ens": names that begin with one of these; "=eth0,eth1": these names; "^docker,lo" and "^=lo": all but those.
// Empty: all.
bool matches_interface(std::string_view pattern, std::string_view name);

}  // namespace trellis::ccl
