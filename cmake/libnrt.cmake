# The stand-in for libnrt.so.1. It holds all that it needs, so that any program can load this one file.
set(standin ${PROJECT_SOURCE_DIR}/device/libnrt)
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${standin}/*.cpp)
add_library(trellis_nrt SHARED ${sources})
target_include_directories(trellis_nrt PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(trellis_nrt PRIVATE room_device room_sim_cluster room_sim_core room_sim_hardware room_schedule room_kernels room_net room_text fmt::fmt ${CMAKE_DL_LIBS})
target_compile_options(trellis_nrt PRIVATE -fvisibility=hidden)
trellis_precompile(trellis_nrt rooms)
# In a folder of its own, so that only programs that ask for it see the name.
set_target_properties(trellis_nrt PROPERTIES OUTPUT_NAME nrt VERSION 1.0 SOVERSION 1
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/libnrt LINK_DEPENDS ${standin}/libnrt.map)
# Its threads, and what it keeps for the process, outlive a dlclose.
target_link_options(trellis_nrt PRIVATE LINKER:-z,nodelete LINKER:--version-script=${standin}/libnrt.map LINKER:-Bsymbolic)
install(TARGETS trellis_nrt LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/trellis OPTIONAL)
install(CODE "
  if(NOT EXISTS \"$<TARGET_FILE:trellis_nrt>\")
    message(STATUS \"Left out: the stand-in for libnrt.so.1, which is not built (cmake --build ${PROJECT_BINARY_DIR} --target trellis_nrt)\")
  endif()")
