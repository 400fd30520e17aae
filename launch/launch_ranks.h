// Starts ranks as processes of this machine, watches them, and ends them together.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace trellis::launch {

inline constexpr int usual_port = 29'500;  // of a job on several nodes; the same as torchrun's

enum class Pin : std::uint8_t {
  none,
  share,  // each rank gets its share of the cores, if there are at least as many cores as ranks
  core,   // each rank gets one core; with more ranks than cores, a hardware thread each as far as there are any
};

struct LaunchOptions {
  std::vector<std::string> program;  // the program and its arguments
  int ranks = 0;                     // on this node
  int nodes = 1;
  int node = 0;
  std::string address;  // where rank 0 will listen
  int port = 0;
  std::string secret;
  bool raw = false;  // ranks write to our standard output and error directly
  Pin pin = Pin::share;
  std::chrono::milliseconds grace{10'000};  // between SIGTERM and SIGKILL
  int most_restarts = 0;
  int restart = 0;  // how often the job has been started again
};

struct LaunchEnd {
  int status = 0;     // of the first rank that failed, 128 + signal when a signal killed it, and 0 when none failed
  bool told = false;  // a signal asked for the end
};

// Throws system_error when the ranks cannot be started. No process is left when it returns, nor when this process is
// killed: ranks are children of a supervisor process, which ends them when this one dies.
LaunchEnd launch(const LaunchOptions&);

}  // namespace trellis::launch
