// Trellis for C and C++: communicators, collectives, streams and memory, with a stable binary interface.
//
//   trellis_comm comm;
//   trellis_comm_create_from_environment(&comm, NULL);
//   trellis_all_reduce(comm, in, out, count, TRELLIS_F32, TRELLIS_SUM, NULL);
//   trellis_comm_destroy(comm);
//
// Compile with what `pkg-config --cflags --libs trellis-c` says, or link trellis::c with CMake. A program that was
// linked with one version runs with every later one of the same major version.
#pragma once

#include "ccl/api/c/communicator.h"
#include "ccl/api/c/config.h"
#include "ccl/api/c/device.h"
#include "ccl/api/c/group.h"
#include "ccl/api/c/operations.h"
#include "ccl/api/c/registration.h"
#include "ccl/api/c/result.h"
#include "ccl/api/c/types.h"
