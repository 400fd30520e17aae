// What a fork does to arenas: in the forked process, a page becomes private when it is first written there.
#pragma once

#include <mutex>
#include <vector>

namespace trellis::device {

class SharedMemoryArena;

class LiveArenas {
 public:
  LiveArenas();
  void add(SharedMemoryArena&);
  void remove(SharedMemoryArena&);

 private:
  void hold_still();  // before the fork: takes all locks, so that no arena is half changed
  void go_on();
  void make_private();

  std::mutex mutex_;
  std::vector<SharedMemoryArena*> all_;
};

LiveArenas& live_arenas();  // of this process

}  // namespace trellis::device
