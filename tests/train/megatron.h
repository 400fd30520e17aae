// Files of tokens in Megatron's format.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace trellis::train {

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string out;
  for (T v : values) out.append(reinterpret_cast<const char*>(&v), sizeof v);
  return out;
}

// An index of sequences, of which each is a document.
inline std::string index_of(std::uint8_t type, std::int64_t width, std::initializer_list<std::int32_t> sizes) {
  std::string out("MMIDIDX\0\0", 9);
  out += bytes_of<std::uint64_t>({1}) + bytes_of<std::uint8_t>({type}) +
         bytes_of<std::uint64_t>({sizes.size(), sizes.size() + 1});
  out += bytes_of(sizes);
  std::int64_t at = 0;
  for (const std::int32_t size : sizes) out += bytes_of<std::int64_t>({at}), at += size * width;
  for (std::size_t i = 0; i <= sizes.size(); ++i) out += bytes_of<std::int64_t>({static_cast<std::int64_t>(i)});
  return out;
}

}  // namespace trellis::train
