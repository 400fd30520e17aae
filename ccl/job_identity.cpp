#include "ccl/job_identity.h"

#include "ccl/config.h"
#include "net/sha256.h"

namespace trellis::ccl {

std::string job_identity(std::string_view secret) {
  if (secret.empty()) return "";
  constexpr std::size_t digits = 16;
  const net::HmacKey key(net::bytes_of(secret));
  return net::hexadecimal(key.of({net::bytes_of("dumps of a job")})).substr(0, digits);
}

std::string job_identity_from_environment() { return job_identity(secret_from_environment()); }

}  // namespace trellis::ccl
