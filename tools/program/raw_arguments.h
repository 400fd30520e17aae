// The words of this process's command line as typed: the parser splits arguments such as [1,2].
#pragma once

#include <string>
#include <vector>

namespace trellis::tools {

std::vector<std::string> typed_words();

}  // namespace trellis::tools
