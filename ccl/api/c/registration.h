// Memory of the program's own that peers read where it lies, as they read what trellis_alloc gave: large operations on
// it then move fewer bytes.
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
// That takes about as long as to copy them. Meanwhile, and while they are moved back, nobody may write to them, and no
// operation of any communicator of the process may be at work on them. A process forked later has them in common with
// this one. Any rank may register what it likes; it goes for all communicators of the process. Memory that
// can't become readable - a stack, a file, what is shared otherwise, what has no whole page - is registered all the
// same and sent as before; what trellis_alloc gave, and all memory over the loopback transport, is readable as it is.
TRELLIS_API trellis_result trellis_comm_register(trellis_comm comm, void* data, size_t bytes,
                                                 trellis_registration* registration);

// Before the memory is given back. The communicator's end does it for what is left, by the same rules.
TRELLIS_API trellis_result trellis_comm_deregister(trellis_comm comm, trellis_registration registration);

// How many bytes are registered with it, and how many of these its peers read where they lie. Either may be NULL.
TRELLIS_API trellis_result trellis_comm_registered_bytes(trellis_comm comm, size_t* bytes, size_t* readable);

#ifdef __cplusplus
}
#endif
