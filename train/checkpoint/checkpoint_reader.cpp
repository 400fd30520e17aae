#include <algorithm>
#include <set>

#include "kernels/reduce/cast.h"
#include "text/refuse.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/hf_tensor_mapping.h"
#include "train/config/hf/hf_config.h"
#include "train/data/input_file.h"

namespace trellis::train {

namespace fs = std::filesystem;

struct CheckpointReader::File {
  explicit File(const fs::path& path) : file(path) {}
  // The beginning of the file: its header, which has the names and offsets of the tensors.
  std::string header() const {
    std::uint64_t size = 0;
    if (file.size() >= sizeof size) file.read(0, sizeof size, &size);
    std::string text(std::min<std::size_t>(file.size(), std::min(size, most_header) + sizeof size), '\0');
    file.read(0, text.size(), text.data());
    return text;
  }
  InputFile file;
};

CheckpointReader::CheckpointReader(const fs::path& path) : path_(path) {
  HfIndex index;
  if (is_hf_folder(path)) {
    JobConfig config;
    apply_hf_config(config, path);
    hf_ = config.step;
    index = hf_weights(path);
    for (const std::string& name : index.files) add(path / name);
    expect_indexed(index);
  } else if (fs::is_directory(path)) {
    info_ = read_done(path);
    for (const std::string& name : info_.files) add(path / name);
  } else {
    add(path);
  }
}

CheckpointReader::~CheckpointReader() = default;

void CheckpointReader::add(const fs::path& path) {
  files_.push_back(std::make_unique<File>(path));
  for (ShardEntry& entry : shard_entries(path.string(), files_.back()->header(), files_.back()->file.size())) {
    const std::string name = hf_ ? hf_name_today(*hf_, entry.name) : entry.name;
    parts_[name].push_back({files_.back().get(), std::move(entry)});
  }
}

void CheckpointReader::expect_indexed(const HfIndex& index) const {
  for (const auto& [tensor, file] : index.tensors) {
    const auto found = parts_.find(hf_name_today(*hf_, tensor));
    const fs::path path = path_ / file;
    const auto is_there = [&](const Part& p) { return p.file->file.path() == path; };
    if (found == parts_.end() || std::ranges::none_of(found->second, is_there))
      text::refuse("{} has no tensor {}, which the index says it has", path.string(), tensor);
  }
}

bool CheckpointReader::has(const std::string& name) const {
  return parts_.contains(hf_ ? hf_place(*hf_, name).name : name);
}

std::vector<std::string> CheckpointReader::names() const {
  std::set<std::string> all;
  for (const auto& [name, parts] : parts_) {
    if (!hf_) all.insert(name);
    if (hf_)
      for (std::string& each : parameters_of_hf(*hf_, name)) all.insert(std::move(each));
  }
  return {all.begin(), all.end()};
}

const std::vector<CheckpointReader::Part>& CheckpointReader::parts(const std::string& name) const {
  const auto found = parts_.find(name);
  if (found == parts_.end()) text::refuse("{}: the checkpoint has no tensor {}", path_.string(), name);
  return found->second;
}

TensorSlice CheckpointReader::stored(const std::string& name) const {
  const TensorSlice& s = parts(name).front().entry.slice;
  return {s.rows, s.columns, 0, s.rows, 0, s.columns};
}

TensorSlice CheckpointReader::whole(const std::string& name) const {
  if (!hf_) return stored(name);
  const HfTensorMapping place = hf_place(*hf_, name);
  return place.whole(stored(place.name));
}

DType CheckpointReader::type(const std::string& name) const {
  return parts(hf_ ? hf_place(*hf_, name).name : name).front().entry.type;
}

std::vector<std::byte> CheckpointReader::bytes_of(const Part& p) const {
  std::vector<std::byte> bytes(p.entry.slice.elements() * kernels::size_of(p.entry.type));
  p.file->file.read(p.entry.first, bytes.size(), bytes.data());
  if (p.entry.checked && checksum_of(bytes.data(), bytes.size()) != p.entry.checksum)
    text::refuse("{}: the bytes of {} are not those that were written: its checksum differs",
                 p.file->file.path().string(), p.entry.name);
  return bytes;
}

std::size_t CheckpointReader::verify() const {
  std::size_t checked = 0;
  for (const auto& [name, parts] : parts_) {
    for (const Part& p : parts) bytes_of(p);
    checked += std::ranges::all_of(parts, [](const Part& p) { return p.entry.checked; }) ? 1 : 0;
  }
  return checked;
}

void CheckpointReader::read(const std::string& name, const TensorSlice& wanted, float* out) const {
  const HfTensorMapping place = hf_ ? hf_place(*hf_, name) : HfTensorMapping{.name = name};
  const TensorSlice all = stored(place.name), model = place.theirs(wanted);
  if (all.rows != model.rows || all.columns != model.columns)
    text::refuse("{} is {} x {} in the checkpoint and {} x {} in the model", place.name, all.rows, all.columns,
                 model.rows, model.columns);
  if (wanted.elements() == 0) return;
  if (place.run == 0 && !place.transposed) return read_stored(place.name, wanted, out);
  // The rectangle of Hugging Face's tensor that contains all of the wanted rows and columns.
  TensorSlice theirs = stored(place.name);
  const std::size_t first = place.row(wanted.row), count = place.row(wanted.row + wanted.row_count - 1) - first + 1;
  (place.transposed ? theirs.column : theirs.row) = first;
  (place.transposed ? theirs.column_count : theirs.row_count) = count;
  (place.transposed ? theirs.row : theirs.column) = wanted.column;
  (place.transposed ? theirs.row_count : theirs.column_count) = wanted.column_count;
  std::vector<float> values(theirs.elements());
  read_stored(place.name, theirs, values.data());
  for (std::size_t r = 0; r < wanted.row_count; ++r)
    for (std::size_t c = 0; c < wanted.column_count; ++c) {
      const std::size_t at = place.row(wanted.row + r) - first;
      out[r * wanted.column_count + c] =
          values[place.transposed ? c * theirs.column_count + at : at * theirs.column_count + c];
    }
}

// Reads rows of a part. A part with a checksum is read whole, so that it can be checked.
std::vector<std::byte> CheckpointReader::rows_of(const Part& p, std::size_t first, std::size_t count) const {
  const std::size_t row = p.entry.slice.column_count * kernels::size_of(p.entry.type);
  if (p.entry.checked) {
    std::vector<std::byte> all = bytes_of(p);
    return {all.begin() + static_cast<std::ptrdiff_t>(first * row),
            all.begin() + static_cast<std::ptrdiff_t>((first + count) * row)};
  }
  std::vector<std::byte> bytes(count * row);
  p.file->file.read(p.entry.first + first * row, bytes.size(), bytes.data());
  return bytes;
}

void CheckpointReader::read_stored(const std::string& name, const TensorSlice& wanted, float* out) const {
  std::vector<bool> covered(wanted.elements(), false);
  std::size_t left = wanted.elements();
  for (const Part& p : parts(name)) {
    const DType type = p.entry.type;
    if (type != DType::f32 && type != DType::bf16 && type != DType::f16 && type != DType::f64)
      text::refuse("{}: {} is of {}: expected f32, bf16, f16 or f64", p.file->file.path().string(), name,
                   kernels::name(type));
    const TensorSlice& s = p.entry.slice;
    const std::size_t row = std::max(s.row, wanted.row),
                      row_end = std::min(s.row + s.row_count, wanted.row + wanted.row_count);
    const std::size_t column = std::max(s.column, wanted.column),
                      column_end = std::min(s.column + s.column_count, wanted.column + wanted.column_count);
    if (row >= row_end || column >= column_end || left == 0) continue;
    const std::size_t size = kernels::size_of(type);
    const std::vector<std::byte> bytes = rows_of(p, row - s.row, row_end - row);
    std::vector<float> values(bytes.size() / size);
    kernels::cast(type, bytes.data(), DType::f32, values.data(), values.size());
    for (std::size_t r = row; r < row_end; ++r)
      for (std::size_t c = column; c < column_end; ++c) {
        const std::size_t to = (r - wanted.row) * wanted.column_count + c - wanted.column;
        out[to] = values[(r - row) * s.column_count + c - s.column];
        if (!covered[to]) covered[to] = true, --left;
      }
  }
  if (left > 0) text::refuse("{}: {} of {} elements are in no file of the checkpoint", name, left, wanted.elements());
}

}  // namespace trellis::train
