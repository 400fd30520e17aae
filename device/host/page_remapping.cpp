#include "device/host/page_remapping.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>

namespace trellis::device {
namespace {

// One line of /proc/self/maps.
struct Mapped {
  std::uintptr_t begin = 0, end = 0;
  char rights[5] = "";
  std::size_t offset = 0;
  unsigned long file = 0;  // its inode; 0: none
  std::string name = {};
};

// Whether all of the pages are mapped, and `right` holds for every mapping that overlaps them.
bool all_are(const std::byte* data, std::size_t bytes, const std::function<bool(const Mapped&)>& right) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data), end = begin + bytes;
  std::uintptr_t covered = begin;
  std::ifstream file("/proc/self/maps");
  for (std::string line; covered < end && std::getline(file, line);) {
    Mapped m;
    int name_at = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %zx %*s %lu %n", &m.begin, &m.end, m.rights, &m.offset, &m.file,
                    &name_at) < 5 ||
        m.end <= begin)
      continue;
    if (m.begin > covered) return false;
    m.name = line.substr(std::min(static_cast<std::size_t>(name_at), line.size()));
    if (!right(m)) return false;
    covered = m.end;
  }
  return covered >= end;
}

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

bool are_private(const std::byte* begin, std::size_t bytes) {
  // Leaves out stacks, which grow by themselves, and the kernel's own pages, which must not be moved.
  return all_are(begin, bytes, [](const Mapped& m) {
    return std::strcmp(m.rights, "rw-p") == 0 && m.file == 0 &&
           (m.name.empty() || m.name == "[heap]" || m.name.starts_with("[anon:"));
  });
}

void move_to_file(std::byte* begin, std::size_t bytes, int file, std::size_t offset, std::byte* file_pages) {
  std::memcpy(file_pages, begin, bytes);
  if (mmap(begin, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
           static_cast<off_t>(offset)) == MAP_FAILED)
    fail("sharing memory: mmap");
}

bool are_of_file(const std::byte* begin, std::size_t bytes, int file, std::size_t offset) {
  struct stat ours = {};
  if (fstat(file, &ours) != 0) fail("sharing memory: fstat");
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  return all_are(begin, bytes, [&](const Mapped& m) {
    return m.file == ours.st_ino && m.rights[3] == 's' && m.offset + (at - m.begin) == offset;
  });
}

bool move_from_file(std::byte* begin, std::size_t bytes, int file, std::size_t offset) {
  if (!are_of_file(begin, bytes, file, offset)) return true;
  void* const own = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own == MAP_FAILED) return false;
  std::memcpy(own, begin, bytes);
  if (mremap(own, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, begin) != MAP_FAILED) return true;
  munmap(own, bytes);
  return false;
}

}  // namespace trellis::device
