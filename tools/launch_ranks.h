// Ranks as processes of this machine: started, watched, ended together.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace trellis::tools {

enum class Pin : std::uint8_t {
  none,
  share,  // each rank has its part of the cores, where there are as many as ranks
  core,   // each has one; where ranks are more, they take turns
};

struct LaunchedJob {
  std::vector<std::string> program;  // and its arguments
  int ranks = 0;                     // on this node
  int nodes = 1;
  int node = 0;
  std::string address;  // where rank 0 will listen
  int port = 0;
  std::string secret;
  bool raw = false;  // ranks write to our own output, by themselves
  Pin pin = Pin::share;
  std::chrono::milliseconds grace{10'000};  // from SIGTERM to SIGKILL
};

// Returns the exit status of the first rank that failed, 128 and the signal when one killed it; 0 when none failed.
// Throws system_error when the ranks cannot be started. Nothing that it started is left when it returns, nor when this
// process is killed: ranks belong to a process between, which ends them when this one is gone.
int launch(const LaunchedJob&);

}  // namespace trellis::tools
