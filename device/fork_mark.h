// Tells, without a system call, whether the process was forked after an object was made. A forked process has copies of
// its parent's objects, but none of the threads that work for them, and what they share with others belongs to its
// parent.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>

namespace trellis::device {

// Thrown if a forked process uses an object that its parent made.
struct Forked : std::logic_error {
  using std::logic_error::logic_error;
};

std::uint32_t forks();  // how many lie between the first process that used the library and this one

class ForkMark {
 public:
  bool forked() const { return at_ != forks(); }
  // Throws Forked if this process was forked after the mark was made. `what` names its owner: "communicator".
  void expect_same_process(const char* what) const {
    if (forked()) refuse(what);
  }

 private:
  [[noreturn, gnu::cold]] static void refuse(const char* what);
  std::uint32_t at_ = forks();
};

// Deletes the object in the process that made it. A forked process keeps its copy: the destructor would wait for
// threads that are not there, and tell peers that the parent has left.
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
