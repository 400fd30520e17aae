// Lets a program end a call that waits, as Python does on Ctrl-C.
#pragma once

namespace trellis::ccl {

// While the object lives, a call that waits in this thread calls `wanted` about ten times a second. If that returns
// true, the operation ends with Aborted, here and on the other ranks.
class Interruption {
 public:
  explicit Interruption(bool (*wanted)());
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  bool (*const before_)();
};

bool interrupted();  // calls this thread's `wanted` if it has one and the last call was 100 ms ago; else false

}  // namespace trellis::ccl
