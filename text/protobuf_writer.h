// Writes messages in the wire format of protocol buffers: fields are appended by number.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace trellis::text {

// Appends the number's bytes, the lowest first.
template <class Number>
void put_little(std::string& out, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(value >> (8 * i));
}

class ProtobufWriter {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    key(field, 0);
    varint(value);
  }
  void fixed(std::uint32_t field, std::uint64_t value) {
    key(field, 1);
    put_little(bytes_, value);
  }
  void real(std::uint32_t field, double value) { fixed(field, std::bit_cast<std::uint64_t>(value)); }
  void real(std::uint32_t field, float value) {
    key(field, 5);
    put_little(bytes_, std::bit_cast<std::uint32_t>(value));
  }
  void text(std::uint32_t field, std::string_view value) {
    key(field, 2);
    after_its_size(value);
  }
  void message(std::uint32_t field, const ProtobufWriter& value) { text(field, value.bytes_); }
  void after_its_size(std::string_view bytes) {  // also the form of each message in a file of several
    varint(bytes.size());
    bytes_ += bytes;
  }

  void clear() { bytes_.clear(); }
  const std::string& bytes() const { return bytes_; }
  std::string&& take() { return std::move(bytes_); }

 private:
  void key(std::uint32_t field, std::uint32_t wire_type) { varint(field << 3 | wire_type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace trellis::text
