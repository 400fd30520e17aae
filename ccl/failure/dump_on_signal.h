// Writes the flight recorders of this process's communicators on SIGUSR2, SIGTERM and SIGINT. The latter two then end
// the process as they would have done without it.
#pragma once

#include <cstdint>

namespace trellis::ccl {

class SignalDumpTarget {
 public:
  SignalDumpTarget() = default;
  virtual ~SignalDumpTarget() = default;
  SignalDumpTarget(const SignalDumpTarget&) = delete;
  SignalDumpTarget& operator=(const SignalDumpTarget&) = delete;

  // Handles request number `request`, unless it has been handled. Called from the serving thread. False: not now, an
  // operation is running; its own thread writes the dump when it is idle.
  virtual bool dump_for(std::uint32_t request) = 0;
};

// The first registration installs the signal handlers; a handler that the program has installed stays.
void register_for_dumps(SignalDumpTarget&);
void unregister_from_dumps(SignalDumpTarget&);

std::uint32_t dumps_requested();  // number of requests so far

// The last request. Later requests do not replace one that tells the process to end.
struct DumpRequest {
  std::uint64_t moment = 0;  // when it came, in TimestampClock; 0: no request
  int signal = 0;            // the signal that ends the process; 0: the process goes on
};
DumpRequest dump_request();

// Makes all other communicators of the process write their state, since this one has failed.
void dump_others(const SignalDumpTarget& failed);

}  // namespace trellis::ccl
