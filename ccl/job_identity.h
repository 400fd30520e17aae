// What the dumps of a job's ranks have in common with its launch's record, also where the launch started a script that
// started the rank.
#pragma once

#include <string>
#include <string_view>

namespace trellis::ccl {

// `restart`: TORCHELASTIC_RESTART_COUNT, or empty. Tells nothing of the secret; empty for an empty one, which many
// share.
std::string job_identity(std::string_view secret, std::string_view restart);
std::string job_identity_from_environment();

}  // namespace trellis::ccl
