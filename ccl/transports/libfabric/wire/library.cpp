#include "ccl/transports/libfabric/wire/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>

namespace trellis::ccl::libfabric {
namespace {

class Category : public std::error_category {
 public:
  const char* name() const noexcept override { return "libfabric"; }
  std::string message(int error) const override { return library().strerror(error); }
};

// Restores the signal handlers: some providers' libraries install their own to print a stack, but that is the program's
// business.
class SignalsKept {
 public:
  SignalsKept() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], nullptr, &before_[i]);
  }
  ~SignalsKept() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  }
  SignalsKept(const SignalsKept&) = delete;
  SignalsKept& operator=(const SignalsKept&) = delete;

 private:
  static constexpr std::array signals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGINT, SIGTERM};
  std::array<struct sigaction, signals.size()> before_ = {};
};

// The library keeps threads, so it is never closed.
struct Opened {
  FabricLibrary library;
  std::string absence;

  Opened() {
    const SignalsKept kept;
    void* const handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr) {
      absence = fmt::format(
          "libfabric.so.1 cannot be opened ({}); Debian has it in libfabric1, the EFA installer in "
          "/opt/amazon/efa/lib, which then must be in LD_LIBRARY_PATH",
          dlerror());
      return;
    }
    find(handle, library.getinfo, "fi_getinfo");
    find(handle, library.freeinfo, "fi_freeinfo");
    find(handle, library.dupinfo, "fi_dupinfo");
    find(handle, library.fabric, "fi_fabric");
    find(handle, library.version, "fi_version");
    find(handle, library.strerror, "fi_strerror");
  }

  template <class Function>
  void find(void* handle, Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function == nullptr) absence = fmt::format("libfabric.so.1 has no {}", name);
  }
};

const Opened& opened() {
  static const Opened one;
  return one;
}

}  // namespace

std::uint32_t FabricLibrary::api() const {
  return std::min<std::uint32_t>(version(), FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION));
}

const FabricLibrary& library() {
  if (!opened().absence.empty()) throw std::system_error(ELIBACC, std::generic_category(), opened().absence);
  return opened().library;
}

std::string library_absence() { return opened().absence; }

std::system_error failure(int error, const std::string& what) {
  static const Category category;
  return {error, category, what};
}

int checked(std::int64_t result, const char* call) {
  if (result < 0) throw failure(static_cast<int>(-result), call);
  return static_cast<int>(result);
}

}  // namespace trellis::ccl::libfabric
