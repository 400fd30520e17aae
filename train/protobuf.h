// The wire format of protocol buffers, written: fields by number, of wire types 0 (varint), 1 (8 bytes), 2 (bytes), 5
// (4).
#pragma once

#include <cstdint>
#include <string>

namespace trellis::train {

inline void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
inline void put_key(std::string& out, int field, int wire) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}
inline void put_number(std::string& out, int field, std::uint64_t value) {
  put_key(out, field, 0);
  put_varint(out, value);
}
inline void put_bytes(std::string& out, int field, const std::string& bytes) {
  put_key(out, field, 2);
  put_varint(out, bytes.size());
  out += bytes;
}
// Low byte first.
template <class T>
void put_little(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(value >> (8 * i));
}

}  // namespace trellis::train
