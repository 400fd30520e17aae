// One file of a checkpoint, in the form of safetensors: tensors by name, each a rectangle of a whole one, with a
// checksum. A file that another program wrote has whole tensors and no checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/types/dtype.h"
#include "train/layers/parameter.h"

namespace trellis::train {

using kernels::DType;

struct ShardTensor {
  std::string name;  // "model.norm.weight", or with the kind before it: "first_moment:model.norm.weight"
  DType type = DType::f32;
  TensorSlice slice;
  const void* data = nullptr;
  std::size_t bytes() const { return slice.elements() * kernels::size_of(type); }
};

std::vector<std::byte> encoded(DType, const std::vector<float>&);  // the values as a tensor's bytes

// Writes to PATH.part, syncs and renames, so that PATH is whole or absent. Throws
// system_error that names the file, also for a full disk; then no PATH.part is left.
void write_shard(const std::filesystem::path&, const std::vector<ShardTensor>&);

struct ShardEntry {
  std::string name;
  DType type = DType::f32;
  TensorSlice slice;
  std::uint64_t first = 0;  // byte of the file
  std::uint64_t checksum = 0;
  bool checked = false;  // the file has a checksum for it
};

constexpr std::uint64_t most_header = 100'000'000;  // bytes; safetensors has the same limit

// Parses the header of a file. `begin`: the file's first bytes, at least the whole header. `bytes`: the file's size.
// Throws invalid_argument that names the file and what is wrong in it.
std::vector<ShardEntry> shard_entries(const std::string& file, std::string_view begin, std::uint64_t bytes);

std::uint64_t checksum_of(const void*, std::size_t bytes);

// Writes a text file in the way of write_shard: the file is whole or absent.
void write_whole(const std::filesystem::path&, const std::string& text);

}  // namespace trellis::train
