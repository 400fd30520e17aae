#include "ccl/api/handles/exception_boundary.h"

#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "ccl/errors.h"
#include "device/device.h"
#include "device/fork_mark.h"
#include "text/refuse.h"

namespace trellis::ccl::api {
namespace {

// Programs keep the pointer from trellis_last_error, so all of a thread's messages use one buffer. It is not in
// thread-local storage, since a library that is loaded late gets little of that.
constexpr std::size_t text_bytes = 1024;
struct Failure {
  trellis_result result = TRELLIS_OK;
  int rank = -1;
  char* text = nullptr;  // of text_bytes, from its first use on
};
constinit thread_local Failure last_failure;
struct Owner {
  ~Owner() { delete[] std::exchange(last_failure.text, nullptr); }
};

char* place_for_text() noexcept {
  if (last_failure.text == nullptr) {
    thread_local const Owner owner;
    last_failure.text = new (std::nothrow) char[text_bytes]();
  }
  return last_failure.text;
}

trellis_result keep(trellis_result result, const char* text, int rank = -1) noexcept {
  last_failure.result = result;
  last_failure.rank = rank;
  if (char* const place = place_for_text(); place != nullptr && place != text) {
    const std::size_t length = strnlen(text, text_bytes - 1);
    std::memmove(place, text, length);
    place[length] = '\0';
  }
  return result;
}

constexpr const char* texts[] = {
    "done",
    "in progress",
    "invalid argument",
    "not possible now",
    "a peer was lost",
    "ranks made calls that do not fit each other",
    "the communicator was aborted",
    "timed out",
    "out of memory",
    "the system refused",
    "a fault within the library",
};
static_assert(std::size(texts) == TRELLIS_RESULTS);

}  // namespace

trellis_result note_failure(const std::exception_ptr& thrown) noexcept {
  try {
    std::rethrow_exception(thrown);
  } catch (const PeerLost& e) {
    return keep(TRELLIS_PEER_LOST, e.what(), e.rank);
  } catch (const Mismatch& e) {
    return keep(TRELLIS_MISMATCH, e.what(), e.rank);
  } catch (const DataCorrupted& e) {
    return keep(TRELLIS_SYSTEM_ERROR, e.what(), e.rank);
  } catch (const Aborted& e) {
    return keep(TRELLIS_ABORTED, e.what());
  } catch (const TimedOut& e) {
    return keep(TRELLIS_TIMED_OUT, e.what());
  } catch (const ResultError& e) {
    return keep(e.result, e.what());
  } catch (const UsageError& e) {
    return keep(TRELLIS_INVALID_USAGE, e.what());
  } catch (const device::Forked& e) {
    return keep(TRELLIS_INVALID_USAGE, e.what());
  } catch (const device::Unsupported& e) {
    return keep(TRELLIS_INVALID_ARGUMENT, e.what());
  } catch (const std::invalid_argument& e) {
    return keep(TRELLIS_INVALID_ARGUMENT, e.what());
  } catch (const std::system_error& e) {
    return keep(TRELLIS_SYSTEM_ERROR, e.what());
  } catch (const std::bad_alloc&) {
    return keep(TRELLIS_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return keep(TRELLIS_INTERNAL_ERROR, e.what());
  } catch (...) {
    return keep(TRELLIS_INTERNAL_ERROR, "something was thrown that is no exception of ours");
  }
}

trellis_result note_failure(trellis_result result, const char* text) noexcept { return keep(result, text); }

void require(const void* pointer, const char* name) {
  if (pointer == nullptr) text::refuse("{} is NULL", name);
}

}  // namespace trellis::ccl::api

using namespace trellis::ccl::api;

const char* trellis_result_text(trellis_result result) {
  return result >= 0 && result < TRELLIS_RESULTS ? texts[result] : "no result of this library";
}
const char* trellis_last_error(void) {
  const char* const text = place_for_text();
  return text == nullptr ? "" : text;
}
trellis_result trellis_last_result(void) { return last_failure.result; }
int trellis_last_error_rank(void) { return last_failure.rank; }
int trellis_version(void) { return TRELLIS_VERSION; }
