#include "train/checkpoint/shard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace trellis::train {
namespace {

using nlohmann::json;

constexpr std::uint64_t most_header = 100'000'000;  // as safetensors has it

const std::pair<const char*, DType> types[] = {{"F64", DType::f64}, {"F32", DType::f32}, {"F16", DType::f16},
                                               {"BF16", DType::bf16}, {"I64", DType::i64}, {"I32", DType::i32},
                                               {"I16", DType::i16}, {"I8", DType::i8}, {"U8", DType::u8}};

const char* word_for(DType type) {
  for (const auto& [word, each] : types)
    if (each == type) return word;
  throw std::invalid_argument(fmt::format("safetensors has no type {}", kernels::name(type)));
}

// A file that is written whole or not at all.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& path) : path_(path), part_(path.string() + ".part") {
    fd_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ < 0) fail();
  }
  ~NewFile() {
    if (fd_ >= 0) close(fd_), unlink(part_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t n = ::write(fd_, at, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail();
      at += n, bytes -= static_cast<std::size_t>(n);
    }
  }
  void finish() {
    if (fsync(fd_) != 0) fail();
    close(std::exchange(fd_, -1));
    if (rename(part_.c_str(), path_.c_str()) != 0) {
      const int error = errno;
      unlink(part_.c_str());
      throw std::system_error(error, std::generic_category(), path_.string());
    }
    sync_folder();
  }

 private:
  [[noreturn]] void fail() const { throw std::system_error(errno, std::generic_category(), part_); }
  // The name is on disk when its folder is.
  void sync_folder() const {
    const int folder = open(path_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    fsync(folder);
    close(folder);
  }
  std::filesystem::path path_;
  std::string part_;
  int fd_ = -1;
};

json shape_of(const ShardTensor& t) {
  if (t.slice.columns == 1) return json::array({t.slice.row_count});
  return json::array({t.slice.row_count, t.slice.column_count});
}

std::vector<std::uint64_t> numbers(const json& meta, const std::string& key, std::size_t count) {
  std::vector<std::uint64_t> all;
  const std::string text = meta.value(key, std::string());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    all.push_back(std::stoull(text.substr(at, end - at)));
    at = end + 1;
  }
  if (!all.empty() && all.size() != count) throw std::invalid_argument(key + " has not " + std::to_string(count) + " numbers");
  return all;
}

ShardEntry entry_of(const std::string& name, const json& said, const json& meta, std::uint64_t data, std::uint64_t size) {
  ShardEntry e;
  e.name = name;
  const std::string type = said.at("dtype");
  const auto* const found = std::ranges::find_if(types, [&](const auto& t) { return type == t.first; });
  if (found == std::end(types)) throw std::invalid_argument(fmt::format("type {}", type));
  e.type = found->second;
  const auto shape = said.at("shape").get<std::vector<std::uint64_t>>();
  if (shape.empty() || shape.size() > 2) throw std::invalid_argument(fmt::format("{} dimensions: expected 1 or 2", shape.size()));
  const std::uint64_t rows = shape[0], columns = shape.size() == 2 ? shape[1] : 1;
  e.slice = {rows, columns, 0, rows, 0, columns};
  if (const auto n = numbers(meta, "slice:" + name, 6); !n.empty()) e.slice = {n[0], n[1], n[2], n[3], n[4], n[5]};
  if (const auto n = numbers(meta, "checksum:" + name, 1); !n.empty()) e.checksum = n[0], e.checked = true;
  const auto where = said.at("data_offsets").get<std::vector<std::uint64_t>>();
  const std::uint64_t bytes = rows * columns * kernels::size_of(e.type);
  if (where.size() != 2 || where[1] < where[0] || where[1] - where[0] != bytes || where[1] > size - data)
    throw std::invalid_argument("its bytes are not in the file");
  if (e.slice.row_count != rows || e.slice.column_count != columns || e.slice.row + rows > e.slice.rows ||
      e.slice.column + columns > e.slice.columns)
    throw std::invalid_argument("its rectangle does not fit");
  e.first = data + where[0];
  return e;
}

}  // namespace

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
  NewFile file(path);
  file.write(text.data(), text.size());
  file.finish();
}

void write_shard(const std::filesystem::path& path, const std::vector<ShardTensor>& tensors, const std::string& note) {
  json header = json::object(), meta = json::object();
  std::uint64_t at = 0;
  for (const ShardTensor& t : tensors) {
    const Slice& s = t.slice;
    header[t.name] = {{"dtype", word_for(t.type)}, {"shape", shape_of(t)}, {"data_offsets", {at, at + t.bytes()}}};
    if (s.row_count != s.rows || s.column_count != s.columns)
      meta["slice:" + t.name] = fmt::format("{} {} {} {} {} {}", s.rows, s.columns, s.row, s.row_count, s.column, s.column_count);
    meta["checksum:" + t.name] = std::to_string(checksum_of(t.data, t.bytes()));
    at += t.bytes();
  }
  if (!note.empty()) meta["note"] = note;
  header["__metadata__"] = meta;
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  NewFile file(path);
  file.write(&size, sizeof size);
  file.write(text.data(), text.size());
  for (const ShardTensor& t : tensors) file.write(t.data, t.bytes());
  file.finish();
}

std::vector<ShardEntry> shard_entries(const std::filesystem::path& path, std::string* note) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::system_error(errno, std::generic_category(), path.string());
  std::uint64_t size = 0;
  in.read(reinterpret_cast<char*>(&size), sizeof size);
  const std::uint64_t whole = std::filesystem::file_size(path);
  const auto refuse = [&](const std::string& what) -> std::invalid_argument {
    return std::invalid_argument(fmt::format("{}: {}", path.string(), what));
  };
  if (!in || size > most_header || size + 8 > whole) throw refuse("expected a safetensors file: its header does not fit");
  std::string text(size, ' ');
  in.read(text.data(), static_cast<std::streamsize>(size));
  const json header = json::parse(text, nullptr, false);
  if (!header.is_object()) throw refuse("expected a safetensors file: its header is no JSON object");
  const json meta = header.value("__metadata__", json::object());
  if (note != nullptr) *note = meta.value("note", std::string());
  std::vector<ShardEntry> entries;
  for (const auto& [name, said] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      entries.push_back(entry_of(name, said, meta, size + 8, whole));
    } catch (const std::exception& e) {
      throw refuse(fmt::format("tensor {}: {}", name, e.what()));
    }
  }
  return entries;
}

}  // namespace trellis::train
