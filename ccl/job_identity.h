// An identity that a launch's record shares with the dumps of the job's ranks, even if the launch started a script that
// started the ranks.
#pragma once

#include <string>
#include <string_view>

namespace trellis::ccl {

// `restart`: TORCHELASTIC_RESTART_COUNT, or empty. The identity does not reveal the secret. Without a secret it is
// empty, since many jobs have none.
std::string job_identity(std::string_view secret, std::string_view restart);
std::string job_identity_from_environment();

}  // namespace trellis::ccl
