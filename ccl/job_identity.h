// An identity that a launch's record shares with the dumps of the job's ranks, even if the launch started a script that
// started the ranks.
#pragma once

#include <string>
#include <string_view>

namespace trellis::ccl {

// It does not reveal the secret. Without a secret it is empty, since many jobs have none. The lives of a job that is
// started again share it: no count of restarts is the same for the launch, on all nodes, and below a script.
std::string job_identity(std::string_view secret);
std::string job_identity_from_environment();

}  // namespace trellis::ccl
