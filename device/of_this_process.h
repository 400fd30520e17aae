// What a process has one of, made when first asked for and never destroyed, as threads may use it until the end. A
// forked process begins with its own, whatever state its parent's was in.
#pragma once

#include <pthread.h>

#include <type_traits>

namespace trellis::device {

// make() returns a new one, and captures nothing.
template <class Make>
auto& of_this_process(Make) {
  static std::invoke_result_t<Make> one = [] {
    pthread_atfork(nullptr, nullptr, [] { one = Make{}(); });
    return Make{}();
  }();
  return *one;
}

}  // namespace trellis::device
