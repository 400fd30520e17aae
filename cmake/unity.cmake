# trellis_in_groups(<target> <source>...)
#
# With TRELLIS_UNITY, compiles the sources in groups, each as one: what they include is then read once a group. For whole
# builds; after an edit, a source alone is faster. A source with compile options of its own stays alone, and so do the
# sources of groups that the file `alone` names, which tools/setup.sh writes. unity.py says which can stand together.
option(TRELLIS_UNITY "Compile sources in groups, for builds of everything" OFF)

function(trellis_in_groups target)
  if(NOT TRELLIS_UNITY OR NOT Python3_EXECUTABLE)
    return()
  endif()
  execute_process(COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/cmake/unity.py 8 ${ARGN}
                  OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE ";" "|" groups "${groups}")
  string(REGEX MATCHALL "[^\n]+" groups "${groups}")
  set(number 0)
  set(alone "")
  if(EXISTS ${PROJECT_BINARY_DIR}/alone)
    file(STRINGS ${PROJECT_BINARY_DIR}/alone alone)
  endif()
  foreach(group IN LISTS groups)
    math(EXPR number "${number} + 1")
    string(REPLACE "|" ";" group "${group}")
    if(NOT ${target}_${number} IN_LIST alone)
      set_source_files_properties(${group} PROPERTIES UNITY_GROUP ${target}_${number})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # What is a source's own affair where it is alone: a local name that another source's header has, too, and private types
  # in members, which GCC takes for a header's.
  target_compile_options(${target} PRIVATE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
