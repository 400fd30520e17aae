#include "device/libnrt/status_error.h"

#include <cstdio>
#include <system_error>

#include "device/device.h"
#include "device/environment_variable.h"
#include "device/memory_accounting.h"
#include "device/neff/neff.h"

namespace trellis::device::nrt {
namespace {

thread_local std::string last;

enum class Level : std::uint8_t { quiet, error, warn };

Level level() {
  static const Level one = [] {
    const std::string word = value_of_variable("NEURON_RT_LOG_LEVEL");
    if (word == "QUIET" || word == "quiet") return Level::quiet;
    return word == "WARN" || word == "INFO" || word == "DEBUG" ? Level::warn : Level::error;
  }();
  return one;
}

void print(std::string_view kind, std::string_view function, std::string_view text) {
  const std::string line = fmt::format("{} NRT {}: {}\n", kind, function, text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// The status for an error of a socket, a file or a thread.
Status status_of(const std::error_code& code) {
  static constexpr std::pair<std::errc, Status> all[] = {
      {std::errc::timed_out, Status::timeout},
      {std::errc::operation_canceled, Status::closed},
      {std::errc::invalid_argument, Status::invalid},
      {std::errc::no_buffer_space, Status::resource},
      {std::errc::too_many_files_open, Status::resource},
      {std::errc::resource_unavailable_try_again, Status::resource},
      {std::errc::not_enough_memory, Status::resource},
      {std::errc::connection_reset, Status::network_proxy},
      {std::errc::connection_refused, Status::network_proxy},
      {std::errc::broken_pipe, Status::network_proxy},
      {std::errc::address_in_use, Status::network_proxy},
      {std::errc::address_not_available, Status::network_proxy},
      {std::errc::host_unreachable, Status::network_proxy},
      {std::errc::network_unreachable, Status::network_proxy},
  };
  for (const auto& [word, status] : all)
    if (code == word) return status;
  return Status::failure;
}

}  // namespace

void report(std::string_view function, Status status, std::string_view why) noexcept {
  try {
    last = fmt::format("{}: {}", words(status), why);
    if (level() >= Level::error) print("ERROR", function, last);
  } catch (...) {  // no memory for the text: the status says enough
  }
}

void warn(std::string_view function, std::string_view text) noexcept {
  try {
    if (level() >= Level::warn) print("WARN", function, text);
  } catch (...) {  // no memory for the text: the warning is not printed
  }
}

const char* last_error() noexcept { return last.c_str(); }

Status status_of_exception(std::string_view function) noexcept {
  Status status = Status::failure;
  std::string why;
  try {
    try {
      throw;
    } catch (const StatusError& e) {
      status = e.status, why = e.what();
    } catch (const ForeignNeffError& e) {
      status = Status::unsupported_neff, why = e.what();
    } catch (const OutOfMemory& e) {
      status = Status::resource, why = e.what();
    } catch (const std::bad_alloc&) {
      status = Status::resource, why = "the host is out of memory";
    } catch (const std::system_error& e) {
      status = status_of(e.code()), why = e.what();
    } catch (const std::invalid_argument& e) {
      status = Status::invalid, why = e.what();
    } catch (const std::exception& e) {
      why = e.what();
    }
  } catch (...) {
    status = Status::resource;
  }
  report(function, status, why);
  return status;
}

std::string_view words(Status status) {
  static constexpr std::pair<Status, std::string_view> all[] = {
      {Status::success, "NRT_SUCCESS"},
      {Status::failure, "NRT_FAILURE"},
      {Status::invalid, "NRT_INVALID"},
      {Status::invalid_handle, "NRT_INVALID_HANDLE"},
      {Status::resource, "NRT_RESOURCE"},
      {Status::timeout, "NRT_TIMEOUT"},
      {Status::hardware_error, "NRT_HW_ERROR"},
      {Status::queue_full, "NRT_QUEUE_FULL"},
      {Status::not_enough_cores, "NRT_LOAD_NOT_ENOUGH_NC"},
      {Status::unsupported_neff, "NRT_UNSUPPORTED_NEFF_VERSION"},
      {Status::host_memory, "NRT_FAIL_HOST_MEM_ALLOC"},
      {Status::uninitialized, "NRT_UNINITIALIZED"},
      {Status::closed, "NRT_CLOSED"},
      {Status::queue_empty, "NRT_QUEUE_EMPTY"},
      {Status::unrecoverable, "NRT_EXEC_UNIT_UNRECOVERABLE"},
      {Status::bad_input, "NRT_EXEC_BAD_INPUT"},
      {Status::completed_with_nan, "NRT_EXEC_COMPLETED_WITH_NUM_ERR"},
      {Status::completed_with_error, "NRT_EXEC_COMPLETED_WITH_ERR"},
      {Status::core_busy, "NRT_EXEC_NC_BUSY"},
      {Status::out_of_bounds, "NRT_EXEC_OOB"},
      {Status::collective_pending, "NRT_COLL_PENDING"},
      {Status::collective_stuck, "NRT_EXEC_HW_ERR_COLLECTIVES"},
      {Status::hbm_uncorrectable, "NRT_EXEC_HW_ERR_HBM_UE"},
      {Status::core_uncorrectable, "NRT_EXEC_HW_ERR_NC_UE"},
      {Status::dma_abort, "NRT_EXEC_HW_ERR_DMA_ABORT"},
      {Status::notification_overflow, "NRT_EXEC_SW_NQ_OVERFLOW"},
      {Status::hbm_repairable, "NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE"},
      {Status::network_proxy, "NRT_NETWORK_PROXY_FAILURE"},
  };
  for (const auto& [value, word] : all)
    if (value == status) return word;
  return "unknown status";
}

}  // namespace trellis::device::nrt
