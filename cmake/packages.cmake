# Finds every external library. README.md says why each is used.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(pugixml REQUIRED)
# hwloc has no CMake package.
find_path(HWLOC_INCLUDE_DIR hwloc.h REQUIRED)
find_library(HWLOC_LIBRARY hwloc REQUIRED)
# oneDNN's CMake package asks for OpenCL's development files, which nothing here needs. May be absent.
find_path(DNNL_INCLUDE_DIR dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
mark_as_advanced(HWLOC_INCLUDE_DIR HWLOC_LIBRARY DNNL_INCLUDE_DIR DNNL_LIBRARY)
# Only the headers: the library is opened when a rank needs it. May be absent. Debian installs it outside the default
# path.
find_path(PMIX_INCLUDE_DIR pmix.h PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/pmix2/include)
mark_as_advanced(PMIX_INCLUDE_DIR)
if(NOT PMIX_INCLUDE_DIR)
  message(STATUS "PMIx not found (libpmix-dev): ranks of mpirun and srun need MASTER_ADDR and MASTER_PORT")
endif()
# Only the headers: the library is opened when a communicator needs it. May be absent.
find_path(LIBFABRIC_INCLUDE_DIR rdma/fabric.h)
mark_as_advanced(LIBFABRIC_INCLUDE_DIR)
if(NOT LIBFABRIC_INCLUDE_DIR)
  message(STATUS "libfabric not found (libfabric-dev): communicators stay on one host")
endif()
find_package(nlohmann_json REQUIRED)
if(NOT TRELLIS_FUZZ)
  find_package(CLI11 REQUIRED)
  find_package(yaml-cpp REQUIRED)
  find_package(GTest REQUIRED)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
if(TRELLIS_BENCH)
  find_package(benchmark REQUIRED)
endif()
