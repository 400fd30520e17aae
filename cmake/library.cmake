# libtrellis: every room in one shared library, and what is installed.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The first thing that an installation does: what is not built is named before anything is copied.
set(installed libtrellis libtrellis_internal trellis_nccl trellis_cuda)
if(NOT TRELLIS_FUZZ)
  list(APPEND installed trellis)
endif()
set(TRELLIS_INSTALLED "")
foreach(target IN LISTS installed)
  string(APPEND TRELLIS_INSTALLED "expect_built(${target} \"$<TARGET_FILE:${target}>\")\n")
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/expect_built.cmake.in ${PROJECT_BINARY_DIR}/expect_built.cmake.in @ONLY)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/expect_built.cmake INPUT ${PROJECT_BINARY_DIR}/expect_built.cmake.in)
install(SCRIPT ${PROJECT_BINARY_DIR}/expect_built.cmake)

get_property(rooms GLOBAL PROPERTY TRELLIS_ROOMS)
get_property(internal_rooms GLOBAL PROPERTY TRELLIS_INTERNAL_ROOMS)
get_property(headers GLOBAL PROPERTY TRELLIS_PUBLIC_HEADERS)
list(TRANSFORM rooms PREPEND room_ OUTPUT_VARIABLE libtrellis_internal_rooms)
list(REMOVE_ITEM rooms ${internal_rooms})
list(TRANSFORM rooms PREPEND room_ OUTPUT_VARIABLE libtrellis_rooms)
set(api ${PROJECT_SOURCE_DIR}/ccl/api)

# libtrellis is what programs link to, and shows only what is public. libtrellis_internal is made of the same objects and
# shows everything, to the program `trellis`, the tests and the benchmarks; nothing else may link to it.
foreach(target libtrellis libtrellis_internal)
  string(REGEX REPLACE "^lib" "" name ${target})
  add_library(${target} SHARED)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} EXPORT_NAME ${name} VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_link_libraries(${target} PRIVATE ${${target}_rooms})
  target_link_options(${target} PRIVATE LINKER:-Bsymbolic-functions)
endforeach()

# For tools/asan: libtrellis_internal under its own name, without the room that nothing there uses.
if(TRELLIS_SANITIZED)
  add_library(libtrellis_tested SHARED EXCLUDE_FROM_ALL)
  set_target_properties(libtrellis_tested PROPERTIES
    OUTPUT_NAME trellis_internal VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tested)
  set(tested_rooms ${libtrellis_internal_rooms})
  list(REMOVE_ITEM tested_rooms room_launch)
  target_link_libraries(libtrellis_tested PRIVATE ${tested_rooms})
  target_link_options(libtrellis_tested PRIVATE LINKER:-Bsymbolic-functions)
endif()

include(${CMAKE_CURRENT_LIST_DIR}/exports.cmake)
trellis_version_script(${PROJECT_BINARY_DIR}/trellis.map)
target_link_options(libtrellis PRIVATE LINKER:--version-script=${PROJECT_BINARY_DIR}/trellis.map)
set_property(TARGET libtrellis APPEND PROPERTY LINK_DEPENDS ${PROJECT_BINARY_DIR}/trellis.map)
add_library(trellis::trellis ALIAS libtrellis)
target_sources(libtrellis PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
install(TARGETS libtrellis EXPORT trellis
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trellis)

install(TARGETS libtrellis_internal LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/trellis NAMELINK_SKIP)

# For C programs: it must not require a C++ standard.
add_library(trellis_c INTERFACE)
add_library(trellis::c ALIAS trellis_c)
set_target_properties(trellis_c PROPERTIES EXPORT_NAME c)
target_include_directories(trellis_c INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${api}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/trellis>)
target_link_libraries(trellis_c INTERFACE $<LINK_ONLY:libtrellis>)
install(TARGETS trellis_c EXPORT trellis)
install(FILES ${api}/trellis.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trellis)

# Two libraries over the C API, with the names of NCCL and CUDA. They are in folders of their own, so that only programs
# that ask for them see these names: ccl/api/<folder> becomes trellis::<folder>, its DOORS are in include/trellis/<folder>.
# PARTS are what the doors include.
function(trellis_shaped_like folder)
  cmake_parse_arguments(PARSE_ARGV 1 like "" "OUTPUT;VERSION" "DOORS;PARTS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${api}/${folder}/*.cpp)
  set_source_files_properties(${sources} TARGET_DIRECTORY room_ccl PROPERTIES HEADER_FILE_ONLY ON)  # not the room's
  string(REGEX MATCH "^[0-9]+" major ${like_VERSION})
  add_library(trellis_${folder} SHARED ${sources})
  add_library(trellis::${folder} ALIAS trellis_${folder})
  set_target_properties(trellis_${folder} PROPERTIES
    OUTPUT_NAME ${like_OUTPUT} EXPORT_NAME ${folder} VERSION ${like_VERSION} SOVERSION ${major}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/shaped INSTALL_RPATH "$ORIGIN/..;$ORIGIN"
    LINK_DEPENDS ${api}/${folder}/${folder}.map)
  target_link_options(trellis_${folder} PRIVATE LINKER:--version-script=${api}/${folder}/${folder}.map)
  target_include_directories(trellis_${folder}
    PRIVATE ${PROJECT_SOURCE_DIR}
    INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${api}/${folder}>
              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/trellis/${folder}>)
  target_link_libraries(trellis_${folder} PRIVATE trellis_c fmt::fmt)
  install(TARGETS trellis_${folder} EXPORT trellis LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/trellis)

  # Installed, they include each other by relative paths: whatever folder a build is told of, all are found.
  set(shaped ${PROJECT_BINARY_DIR}/shaped_headers)
  foreach(header IN LISTS like_DOORS like_PARTS)
    set(source ${api}/${folder}/${header})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(READ ${source} text)
    string(REGEX REPLACE "[^/]+$" "" up ${header})
    string(REGEX REPLACE "[^/]+/" "../" up "${up}")
    string(REPLACE "#include \"ccl/api/${folder}/" "#include \"${up}" text "${text}")
    file(CONFIGURE OUTPUT ${shaped}/ccl/api/${folder}/${header} CONTENT "${text}" @ONLY)
  endforeach()
  foreach(door IN LISTS like_DOORS)
    file(CONFIGURE OUTPUT ${shaped}/${folder}/${door} CONTENT "#pragma once\n#include \"../ccl/api/${folder}/${door}\"\n")
  endforeach()
  install(DIRECTORY ${shaped}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trellis)
  install(DIRECTORY ${shaped}/ccl/api/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trellis/ccl/api)
endfunction()
set(nccl_doors nccl.h nccl_device.h)
set(cuda_doors cuda.h cuda_runtime.h cuda_runtime_api.h cuda_fp16.h cuda_bf16.h cuda_fp8.h)
trellis_shaped_like(nccl OUTPUT nccl VERSION 2.32.3 DOORS ${nccl_doors}
  PARTS collective_config.h communicator.h config.h operations.h parameters.h types.h
        device/calls.h device/requirements.h device/teams.h device/types.h)
trellis_shaped_like(cuda OUTPUT trellis_cudart VERSION ${PROJECT_VERSION} DOORS ${cuda_doors}
  PARTS narrow.h qualifiers.h types.h vectors.h)

# NCCL_HOME=<prefix> and CUDA_HOME=<prefix> find them too.
configure_file(${CMAKE_CURRENT_LIST_DIR}/nccl_home.cmake.in ${PROJECT_BINARY_DIR}/nccl_home.cmake @ONLY)
install(SCRIPT ${PROJECT_BINARY_DIR}/nccl_home.cmake)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/trellis)
install(EXPORT trellis NAMESPACE trellis:: FILE trellis-config.cmake DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/trellis-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/trellis-config-version.cmake DESTINATION ${package})

# The .pc files find their prefix from where they lie, so the installed tree can be moved.
file(RELATIVE_PATH TRELLIS_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(name trellis trellis-c trellis-nccl trellis-cuda)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
