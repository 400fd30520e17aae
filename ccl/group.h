// Several operations as one.
#pragma once

#include "ccl/communicator.h"

namespace trellis::ccl {

// Until end(), this thread's operations are only recorded; end() runs them all as one. If nested, the outermost counts.
class Group {
 public:
  Group();
  ~Group();  // without end(): discards what was recorded
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  void end();
  static bool open();  // whether this thread has an open group

 private:
  friend class Communicator;
  template <class What>
  static void issue(Communicator::State&, What&&, device::Stream*);  // runs it now, or when the group ends
  static void forget(const Communicator::State&);
  bool ended_ = false;
};

}  // namespace trellis::ccl
