#include "ccl/descriptor_limit.h"
#include "net/descriptor.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <system_error>

namespace trellis::ccl {
namespace {

constexpr std::size_t usual = 64, of_each_rank = 3;

// If no descriptor is left to read the folder with, all of them are in use.
std::size_t in_use() {
  std::error_code unreadable;
  const std::filesystem::directory_iterator all("/proc/self/fd", unreadable);
  return unreadable ? net::descriptor_limit() : static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::size_t needed_by(Rank ranks) { return usual + of_each_rank * static_cast<std::size_t>(ranks); }

}  // namespace

std::size_t most_greeting(std::size_t limit) { return std::clamp<std::size_t>(limit / 4, 4, 16'384); }

bool raise_descriptor_limit() {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= files.rlim_max) return false;
  files.rlim_cur = files.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &files) == 0;
}

void allow_descriptors(Rank ranks) {
  const std::size_t needed = needed_by(ranks), limit = net::descriptor_limit();
  if (needed > limit || in_use() > limit - needed) raise_descriptor_limit();
}

std::exception_ptr with_descriptor_limit(std::exception_ptr failure, Rank rank, Rank ranks) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::system_error& e) {
    if (e.code().value() != EMFILE) return failure;
    return std::make_exception_ptr(std::system_error(
        e.code(),
        fmt::format("rank {} of {} may have {} descriptors, and has {}: expected room for {} more (ulimit -n {}); {}",
                    rank, ranks, net::descriptor_limit(), in_use(), needed_by(ranks), in_use() + needed_by(ranks),
                    e.what())));
  } catch (...) {
    return failure;
  }
}

}  // namespace trellis::ccl
