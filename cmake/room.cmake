include(${CMAKE_CURRENT_LIST_DIR}/precompile.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/unity.cmake)

# trellis_room(NAME <room> [INTERNAL] [DEPENDS <room>...] [LINK <library>...] [PUBLIC <header>...])
#
# Makes the OBJECT library room_<room> from every .cpp below the current folder; a new file needs no edit. OBJECT,
# because a STATIC library drops the files whose only effect is to register themselves. DEPENDS repeats the layer table,
# which tools/check/layers.py holds. LINK is private to the room: no header of ours includes a library's. PUBLIC headers
# are installed, and include no others; the names that they declare are in exports.txt. INTERNAL: only the program, the
# tests and the benchmarks have it, and libtrellis does not.
function(trellis_room)
  cmake_parse_arguments(PARSE_ARGV 0 room "INTERNAL" "NAME" "DEPENDS;LINK;PUBLIC")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)

  add_library(room_${room_NAME} OBJECT ${sources} ${headers})
  target_include_directories(room_${room_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(room_${room_NAME} PRIVATE ${room_LINK})
  if("OpenMP::OpenMP_CXX" IN_LIST room_LINK)
    trellis_precompile(room_${room_NAME} rooms_with_openmp)
  else()
    trellis_precompile(room_${room_NAME} rooms)
  endif()
  trellis_in_groups(room_${room_NAME} ${sources})

  set_property(GLOBAL APPEND PROPERTY TRELLIS_ROOMS ${room_NAME})
  if(room_INTERNAL)
    set_property(GLOBAL APPEND PROPERTY TRELLIS_INTERNAL_ROOMS ${room_NAME})
  endif()
  set_property(GLOBAL PROPERTY TRELLIS_BELOW_${room_NAME} ${room_DEPENDS})
  list(TRANSFORM room_PUBLIC PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY TRELLIS_PUBLIC_HEADERS ${room_PUBLIC})
endfunction()
