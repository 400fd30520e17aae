// Builds a protobuf message: fields are appended in the wire format.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace trellis::sim {

class Message {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    varint(field << 3 | 0);
    varint(value);
  }
  void fixed(std::uint32_t field, std::uint64_t value) {
    varint(field << 3 | 1);
    for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>(value >> shift));
  }
  void real(std::uint32_t field, double value) { fixed(field, std::bit_cast<std::uint64_t>(value)); }
  void text(std::uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(std::uint32_t field, const Message& value) { text(field, value.bytes_); }

  void clear() { bytes_.clear(); }
  const std::string& bytes() const { return bytes_; }
  std::string&& take() { return std::move(bytes_); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace trellis::sim
