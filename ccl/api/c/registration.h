// Registration of the program's own memory, so that peers read it directly, as they read memory from trellis_alloc.
// Large operations on it then move fewer bytes.
//
//   trellis_registration registration;
//   trellis_comm_register(comm, data, bytes, &registration);
//   ...
//   trellis_comm_deregister(comm, registration);
//   free(data);
#pragma once

#include "ccl/api/c/communicator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trellis_registration_opaque* trellis_registration;

// Over shared memory, the whole pages of `data` become pages of a file that the peers map; addresses and contents stay.
// That takes about as long as copying them. While they are moved, there or back, nobody may write to them, and no
// operation of any communicator of the process may use them. If this process forks while memory is registered, it does
// not see what the child writes to the pages. In pages that the child has not written itself, the child sees what this
// process writes, and zeros once they are deregistered. Any rank may register any memory, which then counts for all
// communicators of the process. Memory that cannot be made readable (a stack, a file, memory shared in another way,
// less than a whole page) is registered all the same and sent as before. Memory from trellis_alloc, and all memory over
// the loopback transport, is readable already.
TRELLIS_API trellis_result trellis_comm_register(trellis_comm comm, void* data, size_t bytes,
                                                 trellis_registration* registration);

// Call it before the memory is freed. Destroying the communicator deregisters what is left, by the same rules.
TRELLIS_API trellis_result trellis_comm_deregister(trellis_comm comm, trellis_registration registration);

// Bytes registered with the communicator, and how many of these its peers read directly. Either may be NULL.
TRELLIS_API trellis_result trellis_comm_registered_bytes(trellis_comm comm, size_t* bytes, size_t* readable);

#ifdef __cplusplus
}
#endif
