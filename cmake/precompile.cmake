# What nearly every source includes, compiled once for a target, which takes a second off each source. dev goes without,
# so that a source that does not include what it uses fails there; so do what cannot keep such results, or read GCC's.
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
