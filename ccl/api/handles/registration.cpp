#include "ccl/api/c/registration.h"

#include "ccl/api/handles/exception_boundary.h"
#include "ccl/api/handles/handle_tables.h"

using namespace trellis::ccl::api;

trellis_result trellis_comm_register(trellis_comm comm, void* data, size_t bytes, trellis_registration* registration) {
  return guarded([&] {
    require(registration, "registration");
    *registration = nullptr;
    const auto use = comms().use(comm);
    require(data, "data");
    *registration =
        static_cast<trellis_registration>(use->registrations().add(bytes, use->ready().expose(data, bytes)));
  });
}

trellis_result trellis_comm_deregister(trellis_comm comm, trellis_registration registration) {
  return guarded([&] { comms().use(comm)->registrations().remove(registration); });
}

trellis_result trellis_comm_registered_bytes(trellis_comm comm, size_t* bytes, size_t* readable) {
  return guarded([&] {
    const auto [all, of_these_readable] = comms().use(comm)->registrations().sum();
    if (bytes != nullptr) *bytes = all;
    if (readable != nullptr) *readable = of_these_readable;
  });
}
