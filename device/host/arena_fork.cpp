#include "device/host/arena_fork.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>

#include "device/host/shared_memory_arena.h"

namespace trellis::device {

LiveArenas& live_arenas() {
  static auto* const arenas = new LiveArenas;
  return *arenas;
}

LiveArenas::LiveArenas() {
  pthread_atfork([] { live_arenas().hold_still(); }, [] { live_arenas().go_on(); },
                 [] {
                   live_arenas().make_private();
                   live_arenas().go_on();
                 });
}

void LiveArenas::add(SharedMemoryArena& arena) {
  const std::lock_guard lock(mutex_);
  all_.push_back(&arena);
}

void LiveArenas::remove(SharedMemoryArena& arena) {
  const std::lock_guard lock(mutex_);
  std::erase(all_, &arena);
}

// Locks in the order in which arenas take their own locks.
void LiveArenas::hold_still() {
  mutex_.lock();
  for (SharedMemoryArena* const arena : all_) {
    arena->sharing_.lock();
    arena->mutex_.lock();
  }
}

void LiveArenas::go_on() {
  for (SharedMemoryArena* const arena : all_) {
    arena->mutex_.unlock();
    arena->sharing_.unlock();
  }
  mutex_.unlock();
}

void LiveArenas::make_private() {
  for (SharedMemoryArena* const arena : all_) arena->make_private();
}

// Makes each page private when it is first written. If the system grants no such mapping, the pages stay shared.
void SharedMemoryArena::make_private() {
  const auto map = [&](std::byte* at, std::size_t bytes, std::size_t offset) {
    mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, window_.fd,
         static_cast<off_t>(offset));
  };
  if (inherited_.exchange(true)) return;  // an earlier fork has done it
  map(window_.base, window_.bytes, 0);
  for (const auto& [begin, moved] : moved_) map(begin, moved.bytes, moved.offset);
}

}  // namespace trellis::device
