// The tools of conformance checks: expectations, and memory of a device that is filled and read through copies.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "device/conformance/conformance.h"
#include "device/noexcept_release.h"

namespace trellis::device {

template <class... Words>
void expect(bool right, fmt::format_string<Words...> text, Words&&... words) {
  if (!right) throw NotConforming(fmt::format(text, std::forward<Words>(words)...));
}

template <class Error, class Work>
std::string expect_refused(std::string_view what, Work&& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  throw NotConforming(fmt::format("{} was not refused", what));
}

// Device memory that the destructor releases.
class DeviceBuffer {
 public:
  DeviceBuffer(Device& device, std::size_t bytes, std::string_view what = "conformance")
      : device_(device), bytes_(bytes), data_(static_cast<std::byte*>(device.allocate(bytes, what))) {}
  ~DeviceBuffer() { give_back(device_, data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  void* let_go() { return std::exchange(data_, nullptr); }

  template <class T>
  void put(const std::vector<T>& values, std::size_t at = 0) {
    device_.copy(data_ + at, values.data(), values.size() * sizeof(T));
  }
  template <class T>
  std::vector<T> get() const {
    std::vector<T> values(bytes_ / sizeof(T));
    device_.copy(values.data(), data_, values.size() * sizeof(T));
    return values;
  }

 private:
  Device& device_;
  const std::size_t bytes_;
  std::byte* data_;
};

inline std::vector<unsigned char> numbered(std::size_t n, int seed) {
  std::vector<unsigned char> out(n);
  for (std::size_t i = 0; i < n; ++i)
    out[i] = static_cast<unsigned char>(i * 7 + i / 251 + static_cast<unsigned>(seed));
  return out;
}

}  // namespace trellis::device
