// Tells whether the process was forked after something was made, without a system call. A forked process has copies of
// its parent's objects, but none of the threads that work for them, and what they share with others is its parent's.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>

namespace trellis::device {

// What was made by the process from which this one was forked is used.
struct Forked : std::logic_error {
  using std::logic_error::logic_error;
};

std::uint32_t forks();  // between this process and the first that used the library

class ForkMark {
 public:
  bool forked() const { return at_ != forks(); }
  // Throws Forked. `what` was made when the mark was: "communicator".
  void expect_same_process(const char* what) const {
    if (forked()) refuse(what);
  }

 private:
  [[noreturn, gnu::cold]] static void refuse(const char* what);
  std::uint32_t at_ = forks();
};

// Deletes in the process that made the object. A forked one keeps its copy: the destructor would wait for threads that
// are not there, and tell peers that the parent has left.
struct DeletedByMaker {
  template <class T>
  void operator()(T* object) const {
    if (!mark.forked()) delete object;
  }
  ForkMark mark = {};
};

template <class T>
using MakersOwn = std::unique_ptr<T, DeletedByMaker>;

}  // namespace trellis::device
