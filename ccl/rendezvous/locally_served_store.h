// Stores that this process serves to others while they are needed, and this process's own access to them, which needs
// no connection.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "ccl/rendezvous/tcp/greeting.h"
#include "ccl/rendezvous/tcp/server.h"

namespace trellis::ccl {

// Time for which a store is kept after its last user if its members did not leave it: a rank may have failed, or be
// late.
inline constexpr std::chrono::seconds usual_linger{30};

// Starts a detached thread that serves the store `first` and those that add_store() adds. It ends with the last store.
std::shared_ptr<StoreLoop> serve_while_used(StoreServerOptions, const StoreName& first = {},
                                            std::chrono::milliseconds linger = usual_linger);
int port_of(const StoreLoop&);
bool add_store(StoreLoop&, const StoreName&,
               const std::string& secret);  // adds the store if it is missing; false: the loop has ended

// Null: the store no longer exists.
std::shared_ptr<Store> own_store(std::shared_ptr<StoreLoop>, const StoreName& = {});

}  // namespace trellis::ccl
