# Precompiles the headers that many sources include, which saves a second or more for each source. Off in relassert, so
# that a source that does not include what it uses fails there. Off also with ccache, which can't keep such results, and
# with compilers that can't read GCC's.
set(precompiled ON)
if(CMAKE_CXX_COMPILER_LAUNCHER OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(precompiled OFF)
endif()
option(TRELLIS_PRECOMPILED "Precompile headers" ${precompiled})

# trellis_precompile(<target> <kind> [<header>...])
#
# The first target of a kind precompiles the usual headers and those that are named, and the others of its kind use what
# it made. They must be optimised alike, too: that is not checked, and GCC crashes where they are not.
function(trellis_precompile target kind)
  if(NOT TRELLIS_PRECOMPILED)
    return()
  endif()
  get_property(maker GLOBAL PROPERTY TRELLIS_PRECOMPILED_${kind})
  if(maker)
    target_precompile_headers(${target} REUSE_FROM ${maker})
    return()
  endif()
  set_property(GLOBAL PROPERTY TRELLIS_PRECOMPILED_${kind} ${target})
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <condition_variable> <cstring> <deque> <filesystem>
    <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <stdexcept> <string> <string_view>
    <system_error> <thread> <tuple> <unordered_map> <utility> <vector> <fmt/format.h> ${ARGN})
endfunction()
