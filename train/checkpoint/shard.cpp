#include "train/checkpoint/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "ccl/atomic_file.h"
#include "kernels/reduce/cast.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::train {
namespace {

using nlohmann::json;

constexpr std::uint64_t most_side = std::uint64_t{1}
                                    << 30;  // rows or columns, so that a tensor's bytes fit into 64 bits

const std::pair<const char*, DType> types[] = {
    {"F64", DType::f64}, {"F32", DType::f32}, {"F16", DType::f16}, {"BF16", DType::bf16}, {"I64", DType::i64},
    {"I32", DType::i32}, {"I16", DType::i16}, {"I8", DType::i8},   {"U8", DType::u8},     {"BOOL", DType::u8}};

const char* word_for(DType type) {
  for (const auto& [word, each] : types)
    if (each == type) return word;
  text::refuse("safetensors has no type {}", kernels::name(type));
}

json shape_of(const ShardTensor& t) {
  if (t.slice.columns == 1) return json::array({t.slice.row_count});
  return json::array({t.slice.row_count, t.slice.column_count});
}

// Parses the text that the metadata has under the key: `count` whole numbers. Returns none if the key is missing.
std::vector<std::uint64_t> numbers(const json& meta, const std::string& key, std::size_t count) {
  const std::string text = meta.value(key, std::string());
  std::vector<std::uint64_t> all;
  for (const std::string_view word : text::words(text)) {
    const auto value = text::number<std::uint64_t>(word);
    if (!value) text::refuse("{} is '{}': expected numbers", key, text);
    all.push_back(*value);
  }
  if (!all.empty() && all.size() != count) text::refuse("{} is '{}': expected {} numbers", key, text, count);
  return all;
}

ShardEntry entry_of(const std::string& name, const json& said, const json& meta, std::uint64_t data,
                    std::uint64_t size) {
  ShardEntry e;
  e.name = name;
  const std::string type = said.at("dtype");
  const auto* const found = std::ranges::find_if(types, [&](const auto& t) { return type == t.first; });
  if (found == std::end(types)) text::refuse("type {}: expected F64, F32, F16, BF16 or whole numbers", type);
  e.type = found->second;
  const auto shape = said.at("shape").get<std::vector<std::uint64_t>>();
  // Of two or more dimensions, all but the last are counted as rows.
  const std::uint64_t columns = shape.size() > 1 ? shape.back() : 1;
  std::uint64_t rows = shape.size() == 1 ? shape[0] : 1;
  for (std::size_t i = 0; i + 1 < shape.size() && rows <= most_side; ++i) {
    if (shape[i] > most_side) text::refuse("{} elements in a dimension", shape[i]);
    rows *= shape[i];
  }
  if (rows > most_side || columns > most_side) text::refuse("{} x {} elements", rows, columns);
  e.slice = {rows, columns, 0, rows, 0, columns};
  if (const auto n = numbers(meta, "slice:" + name, 6); !n.empty()) e.slice = {n[0], n[1], n[2], n[3], n[4], n[5]};
  if (const auto n = numbers(meta, "checksum:" + name, 1); !n.empty()) e.checksum = n[0], e.checked = true;
  const auto where = said.at("data_offsets").get<std::vector<std::uint64_t>>();
  const std::uint64_t bytes = rows * columns * kernels::size_of(e.type);
  if (where.size() != 2 || where[1] < where[0] || where[1] - where[0] != bytes)
    text::refuse("{} x {} elements of {} are not the bytes {}", rows, columns, type, said["data_offsets"].dump());
  if (where[1] > size - data)
    text::refuse("its bytes are not in the file, which ends after {} of them; the file was cut short",
                 where[0] > size - data ? 0 : size - data - where[0]);
  const TensorSlice& s = e.slice;
  if (s.rows > most_side || s.columns > most_side || s.row > most_side || s.column > most_side)
    throw std::invalid_argument("its rectangle does not fit");
  if (e.slice.row_count != rows || e.slice.column_count != columns || e.slice.row + rows > e.slice.rows ||
      e.slice.column + columns > e.slice.columns)
    throw std::invalid_argument("its rectangle does not fit");
  e.first = data + where[0];
  return e;
}

}  // namespace

std::vector<std::byte> encoded(DType type, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * kernels::size_of(type));
  if (type == DType::f32)
    std::memcpy(bytes.data(), values.data(), bytes.size());
  else
    kernels::cast(DType::f32, values.data(), type, bytes.data(), values.size());
  return bytes;
}

std::uint64_t checksum_of(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t hash = 0x9E37'79B9'7F4A'7C15 ^ bytes;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0xBF58'476D'1CE4'E5B9;
    hash ^= hash >> 29;
  };
  for (; bytes >= 8; at += 8, bytes -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    mix(word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, at, bytes);
  mix(rest);
  return hash;
}

void write_whole(const std::filesystem::path& path, const std::string& text) {
  ccl::AtomicFile file(path, ccl::unforeseen_draft(path), 0644);
  file.write(text.data(), text.size());
  file.finish_safe();
}

void write_shard(const std::filesystem::path& path, const std::vector<ShardTensor>& tensors) {
  json header = json::object(), meta{{"format", "pt"}};  // Hugging Face's readers require it
  std::uint64_t at = 0;
  for (const ShardTensor& t : tensors) {
    const TensorSlice& s = t.slice;
    header[t.name] = {{"dtype", word_for(t.type)}, {"shape", shape_of(t)}, {"data_offsets", {at, at + t.bytes()}}};
    if (s.row_count != s.rows || s.column_count != s.columns)
      meta["slice:" + t.name] =
          fmt::format("{} {} {} {} {} {}", s.rows, s.columns, s.row, s.row_count, s.column, s.column_count);
    meta["checksum:" + t.name] = std::to_string(checksum_of(t.data, t.bytes()));
    at += t.bytes();
  }
  header["__metadata__"] = meta;
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  ccl::AtomicFile file(path, path.string() + ".part", 0644);
  file.write(&size, sizeof size);
  file.write(text.data(), text.size());
  for (const ShardTensor& t : tensors) file.write(t.data, t.bytes());
  file.finish_safe();
}

std::vector<ShardEntry> shard_entries(const std::string& file, std::string_view begin, std::uint64_t bytes) {
  const auto refuse = [&](const std::string& what) { return std::invalid_argument(fmt::format("{}: {}", file, what)); };
  if (begin.starts_with("version https://git-lfs"))
    throw refuse("a pointer of Git LFS: expected the file itself, which `git lfs pull` fetches");
  std::uint64_t size = 0;
  if (begin.size() >= sizeof size) std::memcpy(&size, begin.data(), sizeof size);
  if (begin.size() < sizeof size || size > most_header || size > begin.size() - sizeof size)
    throw refuse("expected a safetensors file: its header does not fit");
  const json header = json::parse(begin.substr(sizeof size, size), nullptr, false);
  if (!header.is_object()) throw refuse("expected a safetensors file: its header is no JSON object");
  const json meta = header.value("__metadata__", json::object());
  if (!meta.is_object()) throw refuse("its metadata is no JSON object");
  std::vector<ShardEntry> entries;
  for (const auto& [name, said] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      entries.push_back(entry_of(name, said, meta, size + sizeof size, bytes));
    } catch (const std::exception& e) {
      throw refuse(fmt::format("tensor {}: {}", name, e.what()));
    }
  }
  return entries;
}

}  // namespace trellis::train
