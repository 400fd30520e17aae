#include "ccl/api/nccl/nccl_error.h"

#include <new>
#include <utility>

#include "ccl/api/nccl/nccl.h"

namespace trellis::nccl {

ncclResult_t result_of(trellis_result result) {
  static constexpr std::pair<trellis_result, ncclResult_t> results[] = {
      {TRELLIS_OK, ncclSuccess},
      {TRELLIS_IN_PROGRESS, ncclInProgress},
      {TRELLIS_INVALID_ARGUMENT, ncclInvalidArgument},
      {TRELLIS_INVALID_USAGE, ncclInvalidUsage},
      {TRELLIS_MISMATCH, ncclInvalidUsage},
      {TRELLIS_PEER_LOST, ncclRemoteError},
      {TRELLIS_ABORTED, ncclRemoteError},
      {TRELLIS_TIMED_OUT, ncclTimeout},
      {TRELLIS_OUT_OF_MEMORY, ncclSystemError},
      {TRELLIS_SYSTEM_ERROR, ncclSystemError},
  };
  for (const auto& [from, to] : results)
    if (from == result) return to;
  return ncclInternalError;
}

trellis_result checked(trellis_result result) {
  if (result != TRELLIS_OK && result != TRELLIS_IN_PROGRESS) throw NcclError(result, trellis_last_error());
  return result;
}

trellis_result note_thrown() noexcept {
  try {
    throw;
  } catch (const NcclError& e) {
    return trellis_note_failure(e.result, e.what());
  } catch (const std::invalid_argument& e) {
    return trellis_note_failure(TRELLIS_INVALID_ARGUMENT, e.what());
  } catch (const std::bad_alloc&) {
    return trellis_note_failure(TRELLIS_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return trellis_note_failure(TRELLIS_INTERNAL_ERROR, e.what());
  } catch (...) {
    return trellis_note_failure(TRELLIS_INTERNAL_ERROR, "something was thrown that is no exception of ours");
  }
}

}  // namespace trellis::nccl

using namespace trellis::nccl;

ncclResult_t ncclGetVersion(int* version) {
  return guarded([&] {
    require(version, "version");
    *version = NCCL_VERSION_CODE;
  });
}
TRELLIS_NCCL_TWIN(ncclGetVersion);

const char* ncclGetErrorString(ncclResult_t result) {
  constexpr const char* texts[] = {
      "success",
      "a call to CUDA failed",
      "the system refused",
      "a fault within the library",
      "invalid argument",
      "not possible now, or not here",
      "another rank is lost, or aborted the communicator",
      "in progress",
      "timed out",
  };
  static_assert(std::size(texts) == ncclNumResults);
  const auto number = static_cast<unsigned>(result);
  return number < ncclNumResults ? texts[number] : "no result of this library";
}
TRELLIS_NCCL_TWIN(ncclGetErrorString);

const char* ncclGetLastError(ncclComm_t) { return trellis_last_error(); }
TRELLIS_NCCL_TWIN(ncclGetLastError);
