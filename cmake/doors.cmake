# <trellis/NAME.h>: what programs include. Each is one line that includes the header with the declarations, below
# build/<preset>/include here, below include in an installation.
set(doors
  communicator ccl/communicator.h
  group ccl/group.h
  device device/device.h
  reduce kernels/reduce/reduce.h
  schedule schedule/algorithms/algorithm.h
  schedule_text schedule/formats/text.h
  simulate sim/cluster/simulate.h
  train train/trainer/library.h
  verify schedule/proof/verify.h)

while(doors)
  list(POP_FRONT doors door header)
  set(file ${PROJECT_BINARY_DIR}/include/trellis/${door}.h)
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT "#pragma once\n#include \"@header@\"  // IWYU pragma: export\n")
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trellis)
endwhile()
target_include_directories(libtrellis INTERFACE
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
