# libtrellis: every room in one shared library, and what an installation of it consists of.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY TRELLIS_ROOMS)
get_property(headers GLOBAL PROPERTY TRELLIS_HEADERS)
list(TRANSFORM rooms PREPEND room_ OUTPUT_VARIABLE room_targets)

add_library(libtrellis SHARED)
add_library(trellis::trellis ALIAS libtrellis)
set_target_properties(libtrellis PROPERTIES
  OUTPUT_NAME trellis EXPORT_NAME trellis VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_compile_features(libtrellis INTERFACE cxx_std_20)
target_link_libraries(libtrellis PRIVATE ${room_targets})
target_sources(libtrellis PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})

install(TARGETS libtrellis EXPORT trellis
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trellis)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/trellis)
install(EXPORT trellis NAMESPACE trellis:: FILE trellis-config.cmake DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/trellis-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/trellis-config-version.cmake DESTINATION ${package})

# The .pc file finds its prefix from where it lies, so the installed tree can be moved.
file(RELATIVE_PATH TRELLIS_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/trellis.pc.in ${PROJECT_BINARY_DIR}/trellis.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/trellis.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
