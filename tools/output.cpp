#include "tools/output.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace trellis::tools {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

[[noreturn]] void trouble(const std::string& doing) { throw std::system_error(errno, std::generic_category(), doing); }

static_assert(most_input == std::size_t{1} << 30, "the message says 1 GiB");

File open(const std::string& path, const char* mode, const std::string& doing) {
  File file(std::fopen(path.c_str(), mode));
  if (!file) trouble(doing);
  return file;
}

void write(std::FILE* file, std::string_view text, const std::string& doing) {
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size()) trouble(doing);
  if (std::fflush(file) != 0) trouble(doing);
}

std::string read(std::FILE* file, const std::string& doing) {
  std::string text;
  std::array<char, 65536> block;
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), file)) {
    if (got > most_input - text.size())
      throw std::system_error(std::make_error_code(std::errc::file_too_large),
                              doing + ": it holds more than 1 GiB, the most that is read");
    text.append(block.data(), got);
  }
  if (std::ferror(file) != 0) trouble(doing);
  return text;
}

}  // namespace

void write_output(const std::string& path, std::string_view text) {
  if (path.empty() || path == "-") return write(stdout, text, "cannot write standard output");
  const std::string doing = "cannot write '" + path + "'";
  const File file = open(path, "wb", doing);
  write(file.get(), text, doing);
}

void expect_writable(const std::string& path) {
  if (!path.empty() && path != "-") open(path, "ab", "cannot write '" + path + "'");
}

std::string read_input(const std::string& path) {
  if (path == "-") return read(stdin, "cannot read standard input");
  const std::string doing = "cannot read '" + path + "'";
  return read(open(path, "rb", doing).get(), doing);
}

}  // namespace trellis::tools
