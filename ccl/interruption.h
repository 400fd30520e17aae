// Lets a program end a call that waits: Python's Ctrl-C.
#pragma once

namespace trellis::ccl {

// While it lives, what waits in the calling thread asks `wanted` about ten times a second. True ends the operation with
// Aborted, here and on the other ranks.
class Interruption {
 public:
  explicit Interruption(bool (*wanted)());
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  bool (*const before_)();
};

bool interrupted();  // asks, where there is somebody to ask and it is time to

}  // namespace trellis::ccl
