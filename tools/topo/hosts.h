// The topology of other hosts, as `trellis topo show host` prints it there.
#pragma once

#include <string>
#include <vector>

namespace trellis::tools {

// `flags`: of trellis topo show. Text, in which hosts that are alike are shown once; or a JSON object by their names.
// Throws invalid_argument that names a bad name, or the host that does not answer.
std::string topo_of_hosts(const std::vector<std::string>& hosts, const std::string& shell, const std::string& flags,
                          bool json);

}  // namespace trellis::tools
