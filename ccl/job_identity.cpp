#include "ccl/job_identity.h"

#include <cstdlib>

#include "ccl/config.h"
#include "net/sha256.h"

namespace trellis::ccl {

std::string job_identity(std::string_view secret, std::string_view restart) {
  if (secret.empty()) return "";
  constexpr std::size_t digits = 16;
  const net::HmacKey key(net::bytes_of(secret));
  return net::hexadecimal(key.of({net::bytes_of("dumps of a job "), net::bytes_of(restart)})).substr(0, digits);
}

std::string job_identity_from_environment() {
  const char* const restart = std::getenv("TORCHELASTIC_RESTART_COUNT");
  return job_identity(secret_from_environment(), restart == nullptr ? "" : restart);
}

}  // namespace trellis::ccl
