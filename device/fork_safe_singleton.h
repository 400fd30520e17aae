// Per-process singletons: made at first use and never destroyed, because threads may use them until the end. A forked
// process gets a new one, whatever state its parent's was in.
#pragma once

#include <pthread.h>

#include <type_traits>

#include "device/fork_mark.h"

namespace trellis::device {

// make() returns a new object. It must not capture anything.
template <class Make>
auto& of_this_process(Make) {
  static std::invoke_result_t<Make> one = [] {
    forks();  // registers its handler first: the child counts the fork before it makes its object
    pthread_atfork(nullptr, nullptr, [] { one = Make{}(); });
    return Make{}();
  }();
  return *one;
}

}  // namespace trellis::device
