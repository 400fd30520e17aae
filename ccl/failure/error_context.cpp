#include "ccl/failure/error_context.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "ccl/errors.h"
#include "device/device.h"

namespace trellis::ccl {
namespace {

template <class Error>
struct Longer : Error {
  Longer(const Error& e, std::string whole) : Error(e), text(std::move(whole)) {}
  const char* what() const noexcept override { return text.c_str(); }
  std::string text;
};

template <class Error>
std::exception_ptr longer(const Error& e, const std::string& more) {
  if (std::string_view(e.what()).ends_with(more)) return std::current_exception();
  return std::make_exception_ptr(Longer<Error>(e, fmt::format("{}; {}", e.what(), more)));
}

}  // namespace

std::exception_ptr with_more(const std::exception_ptr& failure, const std::string& more) {
  try {
    std::rethrow_exception(failure);
  } catch (const PeerLost& e) {
    return longer(e, more);
  } catch (const Mismatch& e) {
    return longer(e, more);
  } catch (const DataCorrupted& e) {
    return longer(e, more);
  } catch (const Aborted& e) {
    return longer(e, more);
  } catch (const TimedOut& e) {
    return longer(e, more);
  } catch (const device::Unsupported& e) {
    return longer(e, more);
  } catch (const std::system_error& e) {
    return longer(e, more);
  } catch (const std::invalid_argument& e) {
    return longer(e, more);
  } catch (...) {
    return failure;
  }
}

}  // namespace trellis::ccl
