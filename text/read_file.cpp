#include "text/read_file.h"

#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

namespace trellis::text {
namespace {

std::system_error cannot_read(const std::string& name, std::error_code why, const char* more = "") {
  return {why, "cannot read " + name + more};
}

std::error_code last_error() { return {errno, std::generic_category()}; }

static_assert(most_of_file == std::size_t{1} << 30, "the message says 1 GiB");

}  // namespace

std::string read_file(const std::string& path) {
  const std::string name = "'" + path + "'";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (!file) throw cannot_read(name, last_error());
  return read_file(file.get(), name);
}

std::string read_file(std::FILE* file, const std::string& name) {
  std::string text;
  std::array<char, 65536> block;
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), file)) {
    if (got > most_of_file - text.size())
      throw cannot_read(name, std::make_error_code(std::errc::file_too_large),
                        ": it holds more than 1 GiB, the most that is read");
    text.append(block.data(), got);
  }
  if (std::ferror(file) != 0) throw cannot_read(name, last_error());
  return text;
}

}  // namespace trellis::text
