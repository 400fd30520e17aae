// Starts a launch on each of several hosts by a remote shell, such as ssh, and ends them together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_ranks.h"

namespace trellis::launch {

struct HostSlots {
  std::string host;  // as the remote shell takes it: "node0", "ec2-user@10.0.0.7"
  int slots = 0;     // ranks that it takes; 0: not told
};

std::string bare_host(const std::string& host);  // without the user

// Throw invalid_argument that names the entry, or the file and its line, and what was expected.
std::vector<HostSlots> hosts_in_list(std::string_view list);  // "node0,node1", "node0:4,node1:4"
std::vector<HostSlots> hosts_in_file(
    const std::string& path);  // "node0", "node0:4", "node0 slots=4"; # begins a comment

// The hosts of --hosts or of --hosts-file, whichever is given. Throws invalid_argument if both are.
std::vector<HostSlots> hosts_in(std::string_view list, const std::string& path);

// The number of ranks on each host: `each`, or, if that is 0, the slots. Throws invalid_argument if hosts differ, or
// have no slots.
int ranks_of_hosts(const std::vector<HostSlots>&, int each);

struct HostsLaunchOptions {
  std::vector<HostSlots> hosts;
  LaunchOptions job;                     // for each host; without an address or a secret, launch_on_hosts() finds one
  std::string shell = "ssh";             // the program and its options; the host and one command line are appended
  std::vector<std::string> passed = {};  // names of further variables that ranks get
};

// The status of the first launch that fails, or 0. The launches find this program at the path that it has here, and
// start in the folder of this process. No launch stays behind, whatever becomes of this process: each ends when the
// pipe to it closes. Throws system_error, and invalid_argument when the others cannot reach the first host by its name.
int launch_on_hosts(HostsLaunchOptions);

std::string path_of_this_program();

// Called on the host: reads the job's secret from standard input, then the names of signals for this process, a line
// each. The end of the input means SIGTERM. Returns the secret. Standard input is /dev/null afterwards.
std::string follow_tether();

}  // namespace trellis::launch
