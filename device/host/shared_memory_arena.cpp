#include "device/host/shared_memory_arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <system_error>

#include "device/host/arena_fork.h"
#include "device/host/page_remapping.h"
#include "device/memory_release_notifier.h"
#include "kernels/dispatch/available_memory.h"
#include "text/refuse.h"

namespace trellis::device {
namespace {

constexpr std::size_t least_window = page << 12;  // a smaller one is of no use

// Maps new private pages for an allocation of a forked process: the window's own pages would show what the parent has
// there.
bool map_anew(std::byte* at, std::size_t bytes) {
  return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) !=
         MAP_FAILED;
}

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

std::size_t window_bytes(std::uint64_t memory) {
  constexpr std::uint64_t holes = 4, most = std::uint64_t{4} << 40, addresses = std::uint64_t{64} << 40;
  const std::uint64_t roomy = memory > most / holes ? most : memory * holes;
  const std::uint64_t wanted = memory == kernels::unknown_memory ? most : std::max(roomy, memory);
  return std::clamp<std::uint64_t>(wanted, least_window, addresses) / page * page;
}

SharedMemoryArena::SharedMemoryArena() {
  window_.bytes = window_bytes(kernels::total_memory());
  window_.fd = memfd_create("trellis-device", MFD_CLOEXEC);
  if (window_.fd < 0) fail("device memory: memfd_create");
  void* base = MAP_FAILED;
  // Takes less if address space is limited (ulimit -v).
  for (; window_.bytes >= least_window && base == MAP_FAILED; window_.bytes /= base == MAP_FAILED ? 2 : 1)
    if (ftruncate(window_.fd, static_cast<off_t>(window_.bytes)) == 0)
      base = mmap(nullptr, window_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, window_.fd, 0);
  if (base == MAP_FAILED) {
    const int error = errno;
    close(window_.fd);
    throw std::system_error(error, std::generic_category(), "device memory: mmap");
  }
  window_.base = static_cast<std::byte*>(base);
  madvise(base, window_.bytes, MADV_HUGEPAGE);  // where the system allows it for shared memory
  free_.emplace(0, window_.bytes);
  live_arenas().add(*this);
}

SharedMemoryArena::~SharedMemoryArena() {
  live_arenas().remove(*this);
  try {
    watched_memory().ends(window_.base, window_.bytes);
  } catch (...) {  // a destructor can't report that a watcher failed
  }
  munmap(window_.base, window_.bytes);
  close(window_.fd);
}

void* SharedMemoryArena::allocate(std::size_t bytes) {
  if (bytes > window_.bytes) throw std::bad_alloc();
  const std::size_t size = bytes == 0 ? page : (bytes + page - 1) / page * page;
  const std::lock_guard lock(mutex_);
  for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
    const auto [offset, room] = *hole;
    if (room < size) continue;
    if (inherited_ && !map_anew(window_.base + offset, size)) throw std::bad_alloc();
    free_.erase(hole);
    if (room > size) free_.emplace(offset + size, room - size);
    used_.emplace(offset, size);
    watched_memory().begins(window_.base + offset, size);
    return window_.base + offset;
  }
  throw std::bad_alloc();
}

void SharedMemoryArena::release(void* pointer) {
  if (pointer == nullptr) return;
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(pointer) - window_.base);
  std::unique_lock lock(mutex_);
  auto found = used_.find(offset);
  if (static_cast<std::byte*>(pointer) < window_.base || found == used_.end())
    text::refuse("release: {} was not allocated here", pointer);
  auto [begin, size] = *found;
  lock.unlock();  // a watcher may call find() meanwhile
  watched_memory().ends(window_.base + begin, size);
  lock.lock();
  used_.erase(begin);
  if (!inherited_)
    fallocate(window_.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
              static_cast<off_t>(size));
  auto after = free_.lower_bound(begin);
  if (after != free_.end() && begin + size == after->first) {
    size += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin())
    if (const auto before = std::prev(after); before->first + before->second == begin) {
      before->second += size;
      return;
    }
  free_.emplace(begin, size);
}

std::size_t SharedMemoryArena::allocated_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [offset, bytes] : used_) sum += bytes;
  return sum;
}

}  // namespace trellis::device
