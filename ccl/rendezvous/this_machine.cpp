#include "ccl/rendezvous/this_machine.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "net/descriptor.h"

namespace trellis::ccl {
namespace {

std::string nothing_at(const std::string& path) {
  if (errno == ENOENT) return "";
  throw std::system_error(errno, std::generic_category(), path);
}

}  // namespace

std::string boot_id() {
  const std::string path = "/proc/sys/kernel/random/boot_id";
  const net::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text;
  const ssize_t got = file ? read(file.number(), text.data(), text.size()) : -1;
  if (got < 0) return nothing_at(path);
  const std::string_view all(text.data(), static_cast<std::size_t>(got));
  return std::string(all.substr(0, all.find('\n')));
}

std::string namespace_of(const std::string& of) {
  const std::string path = "/proc/self/ns/" + of;
  std::array<char, 64> text;
  const ssize_t got = readlink(path.c_str(), text.data(), text.size());
  if (got < 0) return nothing_at(path);
  return {text.data(), static_cast<std::size_t>(got)};
}

std::string this_host(const std::string& name) { return boot_id() + "/" + namespace_of("pid") + "/" + name; }

}  // namespace trellis::ccl
