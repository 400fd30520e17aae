// What a fork does to arenas: in the forked process, a page becomes private when it is first written there.
#pragma once

#include <mutex>
#include <vector>

namespace trellis::device {

class Arena;

class LiveArenas {
 public:
  LiveArenas();
  void add(Arena&);
  void remove(Arena&);

 private:
  void hold_still();  // before the fork: takes all locks, so that no arena is half changed
  void go_on();
  void make_private();

  std::mutex mutex_;
  std::vector<Arena*> all_;
};

LiveArenas& live_arenas();  // of this process

}  // namespace trellis::device
