// Errors as torch's, with the operation, this rank, and the rank at fault.
#pragma once

#include <chrono>
#include <exception>
#include <string>
#include <vector>

#include "ccl/errors.h"
#include "device/fork_mark.h"

namespace trellis::process_group {

// Which ranks a group has.
struct Membership {
  std::string name;
  int rank = 0, size = 1;
  std::chrono::milliseconds timeout{};
  std::vector<std::int64_t> ranks;  // of the job, by rank of the group; empty: the same
  std::int64_t in_job(int rank_of_group) const;
  std::string named(int rank_of_group) const;  // "rank 1", "rank 1 (rank 5 of the job)"
};

// DistBackendError; ValueError for what the caller did wrong. Errors of torch and of Python stay as they are.
std::exception_ptr as_torch_error(std::exception_ptr, const std::string& operation, const Membership&);
// Throws DistBackendError if this process was forked from the one that made the mark.
void expect_same_process(const device::ForkMark&, const std::string& operation, const Membership&);
// Whether an error of the library is worth a dump: it is not where the group was aborted or shut down.
bool is_failure(const std::exception_ptr&, int own_rank);
// waits_for: the rank at the other end of a message; -1: all ranks.
std::exception_ptr timed_out(const std::string& operation, const Membership&, std::chrono::milliseconds, int waits_for);

}  // namespace trellis::process_group
