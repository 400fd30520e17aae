// Communicators of this process that write their flight recorders when a signal asks for them: SIGUSR2, and SIGTERM and
// SIGINT, which then end the process as they would have without.
#pragma once

#include <cstdint>

namespace trellis::ccl {

class Dumped {
 public:
  Dumped() = default;
  virtual ~Dumped() = default;
  Dumped(const Dumped&) = delete;
  Dumped& operator=(const Dumped&) = delete;

  // For request number `request`, unless that has been done. From a thread that belongs to none; false: not now, as an
  // operation is under way, whose own thread does it when it has nothing else to do.
  virtual bool dump_for(std::uint32_t request) = 0;
};

// From the first of these on the process hears the signals; a handler that is there already stays.
void add_dumped(Dumped&);
void remove_dumped(Dumped&);

std::uint32_t dumps_requested();  // so far

}  // namespace trellis::ccl
