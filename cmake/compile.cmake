# How every target of the project is compiled. Optimisation and sanitizers belong to the presets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Presets choose this; a bare configure gets Release" FORCE)
endif()

# Designated initialisers leave fields at their defaults on purpose, hence the first warning that is off. The second
# makes clang, where -Wconversion includes it, agree with GCC: ranks and chunks are signed and index containers.
add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                    -Wno-missing-field-initializers -Wno-sign-conversion)
# At -O3 GCC 12 raises these falsely, on what it has inlined or unrolled; at -O2, in dev, they are on and errors.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("$<$<CONFIG:Release,RelAssert>:-Wno-array-bounds;-Wno-maybe-uninitialized;-Wno-restrict;-Wno-stringop-overflow>")
endif()

option(TRELLIS_FUZZ "Build the fuzz targets, with libFuzzer, and nothing else of tools, bench and tests" OFF)
option(TRELLIS_BENCH "Build bench/" OFF)
option(TRELLIS_TEST_ROOMS "Link a room's tests with it and the rooms below it alone, so that no other is built" OFF)
option(TRELLIS_SANITIZED "The compile flags carry a sanitizer, so a plain consumer cannot load the library" OFF)

find_program(CCACHE ccache)
mark_as_advanced(CCACHE)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
