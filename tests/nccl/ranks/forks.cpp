// A process that was forked from one with communicators: they remain its parent's.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "ccl/api/nccl/nccl.h"

namespace trellis::nccl {
namespace {

// Counts the checks that fail in the child, and reports them on standard error.
class Child {
 public:
  void refused(ncclResult_t result, ncclResult_t expected, const char* call) {
    const std::string why = ncclGetLastError(nullptr);
    check(result == expected && why.find("forked") != std::string::npos, call + (": " + why));
  }
  void check(bool right, const std::string& what) {
    if (right) return;
    std::fprintf(stderr, "in the child: %s\n", what.c_str());
    ++failures_;
  }
  int failures() const { return failures_; }

 private:
  int failures_ = 0;
};

template <class Work>
void expect_well_in_child(Work work) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    Child child;
    work(child);
    _exit(child.failures());
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST(NcclForks, ACommunicatorIsTheParents) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  float one = 1;
  expect_well_in_child([&](Child& child) {
    ncclComm_t own = nullptr;
    child.check(ncclCommInitAll(&own, 1, nullptr) == ncclSuccess && own != comm, "a communicator of its own");
    child.refused(ncclAllReduce(&one, &one, 1, ncclFloat, ncclSum, comm, nullptr), ncclInvalidArgument, "all_reduce");
    child.refused(ncclCommFinalize(comm), ncclInvalidArgument, "finalize");
    child.refused(ncclCommAbort(comm), ncclInvalidArgument, "abort");
    child.refused(ncclCommDestroy(comm), ncclInvalidArgument, "destroy");
    child.check(ncclAllReduce(&one, &one, 1, ncclFloat, ncclSum, own, nullptr) == ncclSuccess, "its all_reduce");
    child.check(ncclCommDestroy(own) == ncclSuccess, "its end");
  });
  EXPECT_EQ(ncclAllReduce(&one, &one, 1, ncclFloat, ncclSum, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(NcclForks, AnOpenGroupIsTheParents) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  float one = 1;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclAllReduce(&one, &one, 1, ncclFloat, ncclSum, comm, nullptr), ncclSuccess);
  expect_well_in_child([](Child& child) { child.refused(ncclGroupEnd(), ncclInvalidUsage, "the group's end"); });
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

}  // namespace
}  // namespace trellis::nccl
