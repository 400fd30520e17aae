# Precompiles the headers that nearly every source includes, which saves a second for each source. Off in relassert, so
# that a source that does not include what it uses fails there. Off also with ccache, which can't keep such results, and
# with compilers that can't read GCC's.
set(precompiled ON)
if(CMAKE_CXX_COMPILER_LAUNCHER OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(precompiled OFF)
endif()
option(TRELLIS_PRECOMPILED "Precompile headers" ${precompiled})
function(trellis_precompile target)
  if(TRELLIS_PRECOMPILED)
    target_precompile_headers(${target} PRIVATE <algorithm> <map> <memory> <optional> <stdexcept> <string> <string_view>
                                                <utility> <vector> <fmt/format.h> ${ARGN})
  endif()
endfunction()
