// libnrt.so.1, opened at run time: a pointer to each of its functions, null where this version has none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/nrt/async_function_list.h"
#include "device/nrt/function_list.h"
#include "device/nrt/trace_function_list.h"

#define TRELLIS_NRT_FUNCTIONS(X) \
  TRELLIS_NRT_CORE(X)            \
  TRELLIS_NRT_EXPERIMENTAL(X)    \
  TRELLIS_NRT_ASYNC(X)           \
  TRELLIS_NRT_SEND_RECV(X)       \
  TRELLIS_NRT_PROFILE(X)         \
  TRELLIS_NRT_SYS_TRACE(X)       \
  TRELLIS_NRT_DEBUG(X)

namespace trellis::device::nrt {

struct NrtFunctionInfo {
  std::string_view name;
  std::string_view since;  // version of the SDK
};
const std::vector<NrtFunctionInfo>& functions();
std::string library_file();  // TRELLIS_LIBNRT, or libnrt.so.1

class NrtLibrary {
 public:
  // Throws Unsupported: one sentence that says what was looked for, and why it is not there.
  explicit NrtLibrary(const std::string& file);
  ~NrtLibrary();
  NrtLibrary(const NrtLibrary&) = delete;
  NrtLibrary& operator=(const NrtLibrary&) = delete;

  // Throws Unsupported that names the missing function and the version of the SDK that has it.
  template <class Function>
  Function need(Function function, std::string_view name) const {
    if (function == nullptr) refuse(name);
    return function;
  }
  // The first of these functions that the library lacks; empty: it has all.
  std::string_view lacks(std::initializer_list<std::string_view> names) const;
  std::string missing_text(std::string_view name) const;
  void* symbol(std::string_view name) const;
  const std::string& file() const { return file_; }

#define TRELLIS_NRT_POINTER(since, result, name, parameters) result(*name) parameters = nullptr;
  TRELLIS_NRT_FUNCTIONS(TRELLIS_NRT_POINTER)
#undef TRELLIS_NRT_POINTER

 private:
  [[noreturn]] void refuse(std::string_view name) const;
  const std::string file_;
  void* handle_ = nullptr;
};

}  // namespace trellis::device::nrt
