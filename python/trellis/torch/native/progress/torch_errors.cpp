#include "trellis/torch/native/progress/torch_errors.h"

#include <c10/util/Exception.h>
#include <torch/csrc/utils/pybind.h>

namespace trellis::process_group {
namespace {

template <class Error>
std::exception_ptr made(const std::string& operation, const Membership& group, const std::string& what) {
  const std::string text = c10::str("trellis: ", operation, " on ", group.named(group.rank), " of group '", group.name,
                                    "' (", group.size, " ranks, timeout of ", group.timeout.count(), " ms): ", what);
  return std::make_exception_ptr(Error(c10::SourceLocation{__func__, __FILE__, __LINE__}, text));
}

}  // namespace

std::int64_t Membership::in_job(int member) const {
  return ranks.empty() ? member : ranks.at(static_cast<std::size_t>(member));
}

std::string Membership::named(int member) const {
  const std::string text = "rank " + std::to_string(member);
  if (member < 0 || member >= size || in_job(member) == member) return text;
  return text + " (rank " + std::to_string(in_job(member)) + " of the job)";
}

std::exception_ptr as_torch_error(std::exception_ptr error, const std::string& operation, const Membership& group) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error&) {
    return error;
  } catch (const pybind11::error_already_set&) {
    return error;
  } catch (const ccl::PeerLost& lost) {
    return made<c10::DistBackendError>(operation, group, c10::str("lost ", group.named(lost.rank), ": ", lost.what()));
  } catch (const ccl::Mismatch& mismatch) {
    return made<c10::DistBackendError>(
        operation, group, c10::str("differs from the call of ", group.named(mismatch.rank), ": ", mismatch.what()));
  } catch (const ccl::Aborted& aborted) {
    const std::string by = aborted.by < 0 ? "" : " by " + group.named(aborted.by);
    return made<c10::DistBackendError>(operation, group, "aborted" + by + ": " + aborted.what());
  } catch (const std::invalid_argument& mistake) {
    return made<c10::ValueError>(operation, group, mistake.what());
  } catch (const std::exception& other) {
    return made<c10::DistBackendError>(operation, group, other.what());
  }
}

void expect_same_process(const device::ForkMark& mark, const std::string& operation, const Membership& group) {
  if (!mark.forked()) return;
  try {
    mark.expect_same_process("process group");
  } catch (const device::Forked& forked) {
    std::rethrow_exception(made<c10::DistBackendError>(operation, group, forked.what()));
  }
}

bool is_failure(const std::exception_ptr& error, int own_rank) {
  try {
    std::rethrow_exception(error);
  } catch (const ccl::Aborted& aborted) {
    return aborted.by >= 0 && aborted.by != own_rank;
  } catch (...) {
    return true;
  }
}

std::exception_ptr timed_out(const std::string& operation, const Membership& group, std::chrono::milliseconds waited,
                             int waits_for) {
  const std::string whom = waits_for < 0 ? "" : "; it waits for " + group.named(waits_for);
  return made<c10::DistBackendError>(operation, group,
                                     c10::str("timed out: it has not ended in ", waited.count(), " ms", whom));
}

}  // namespace trellis::process_group
