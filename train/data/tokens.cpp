#include "train/data/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "kernels/types/random.h"

namespace trellis::train {
namespace {

// What Megatron's index calls types, in bytes; 0: floats, which are no tokens.
constexpr std::size_t megatron_widths[] = {0, 1, 1, 2, 4, 8, 0, 0, 2};

template <class T>
T word_at(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Files that would be trained on as text, and are not: what they begin with, and what that is.
constexpr std::pair<std::string_view, const char*> other_kinds[] = {
    {"PAR1", "a Parquet file"},
    {"ARROW1", "an Arrow file"},
    {"\xFF\xFF\xFF\xFF", "an Arrow stream"},
    {"\x1F\x8B", "packed by gzip"},
    {"\x28\xB5\x2F\xFD", "packed by zstd"},
    {"PK\x03\x04", "a zip file"},
    {"\x93NUMPY", "a NumPy array"},
    {"\x89HDF", "an HDF5 file"},
    {"BZh", "packed by bzip2"},
    {"MMIDIDX", "Megatron's index, whose tokens are in the .bin beside it"}};

void refuse_other_kinds(const ReadFile& file) {
  char head[8] = {};
  const std::size_t n = std::min(sizeof head, file.size());
  file.read(0, n, head);
  for (const auto& [begin, what] : other_kinds)
    if (std::string_view(head, n).starts_with(begin))
      throw std::invalid_argument(
          fmt::format("{} is {}: expected text, numbers of 2 or 4 bytes (.bin), Megatron's .bin and .idx, or .jsonl",
                      file.path().string(), what));
}

// NxD Training's train_dir is a folder of a data set.
void refuse_folder(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return;
  std::string kind = "a folder";
  for (const auto& each : std::filesystem::directory_iterator(path))
    for (const auto& [ending, what] :
         {std::pair{".arrow", "a folder of Arrow files"}, {".parquet", "a folder of Parquet files"}})
      if (each.path().extension() == ending) kind = what;
  throw std::invalid_argument(
      fmt::format("{} is {}: expected a file of text or tokens, or a list of them", path.string(), kind));
}

}  // namespace

TokenFile::TokenFile(const std::filesystem::path& path, std::size_t token_bytes) : name_(path.string()) {
  std::filesystem::path data = path, index = path;
  index.replace_extension(".idx");
  refuse_folder(path);
  const bool numbers = path.extension() == ".bin" || (!std::filesystem::exists(path) && std::filesystem::exists(index));
  if (numbers) data.replace_extension(".bin");
  if (numbers && !std::filesystem::exists(data) && std::filesystem::exists(index))
    throw std::invalid_argument(
        fmt::format("{} is missing: expected the tokens of {} in it", data.string(), index.string()));
  file_ = std::make_unique<ReadFile>(data);
  if (!numbers) refuse_other_kinds(*file_);
  if (path.extension() == ".jsonl") {
    read_records();
    return;
  }
  if (numbers && std::filesystem::exists(index)) {
    read_index(index);
  } else if (numbers) {
    if (token_bytes != 2 && token_bytes != 4)
      throw std::invalid_argument(fmt::format("data.token_bytes is {}: expected 2 or 4 for {}", token_bytes, name_));
    width_ = token_bytes;
  }
  if (file_->size() % width_ != 0)
    throw std::invalid_argument(
        fmt::format("{}: {} bytes are no whole number of tokens of {} bytes", name_, file_->size(), width_));
  tokens_ = file_->size() / width_;
}

void TokenFile::read_index(const std::filesystem::path& path) {
  const std::string index = ReadFile(path).whole();
  constexpr std::size_t head = 9 + 8 + 1 + 8 + 8;
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(fmt::format("{}: {}", path.string(), what));
  };
  if (index.size() < head || std::memcmp(index.data(), "MMIDIDX\0\0", 9) != 0)
    refuse("expected an index that begins with MMIDIDX");
  const auto version = word_at<std::uint64_t>(index.data() + 9);
  const auto code = word_at<std::uint8_t>(index.data() + 17);
  const auto sequences = word_at<std::uint64_t>(index.data() + 18);
  if (version != 1) refuse(fmt::format("version {}: expected 1", version));
  if (code >= std::size(megatron_widths) || megatron_widths[code] == 0)
    refuse(fmt::format("type {}: expected one of whole numbers", code));
  width_ = megatron_widths[code];
  if (sequences > (index.size() - head) / 12)
    refuse(fmt::format("{} sequences do not fit into {} bytes", sequences, index.size()));
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < sequences; ++i) sum += word_at<std::uint32_t>(index.data() + head + 4 * i);
  if (sum * width_ != file_->size())
    refuse(fmt::format("{} tokens of {} bytes in sequences, and {} bytes of data", sum, width_, file_->size()));
}

// A record is its prompt, its response, and the end of a line. Records follow each other without a gap: they are
// packed.
void TokenFile::read_records() {
  const std::string whole = file_->whole();
  const std::string_view all = whole;
  int line = 0;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    ++line;
    const nlohmann::json record = nlohmann::json::parse(all.substr(at, end - at), nullptr, false);
    const bool blank = all.substr(at, end - at).find_first_not_of(" \t\r") == all.npos;
    at = end + 1;
    if (blank) continue;
    if (!record.is_object() || !record.contains("prompt") || !record["prompt"].is_string() ||
        !record.contains("response") || !record["response"].is_string())
      throw std::invalid_argument(
          fmt::format("{}, line {}: expected an object with \"prompt\" and \"response\"", name_, line));
    const std::string prompt = record["prompt"], response = record["response"];
    text_ += prompt + response + "\n";
    counts_.resize(counts_.size() + prompt.size(), false);
    counts_.resize(text_.size(), true);
  }
  tokens_ = text_.size();
}

void TokenFile::read(std::size_t first, std::size_t count, std::int32_t* out) const {
  if (!counts_.empty()) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<unsigned char>(text_[first + i]);
    return;
  }
  if (width_ == sizeof *out) return file_->read(first * width_, count * width_, out);
  std::vector<char> bytes(count * width_);
  file_->read(first * width_, bytes.size(), bytes.data());
  for (std::size_t i = 0; i < count; ++i) {
    const char* const at = bytes.data() + i * width_;
    out[i] = width_ == 1   ? word_at<std::uint8_t>(at)
             : width_ == 2 ? word_at<std::uint16_t>(at)
                           : static_cast<std::int32_t>(word_at<std::int64_t>(at));
  }
}

std::int32_t TokenFile::at(std::size_t i) const {
  std::int32_t token = 0;
  read(i, 1, &token);
  return token;
}

DataFile TokenFile::identity() const { return {name_, file_->size(), file_->checksum()}; }

std::uint64_t permuted(std::uint64_t i, std::uint64_t n, std::uint64_t key) {
  // A Feistel network on the smallest even number of bits that holds n, walked until it is below n again.
  const int half = std::max(1, (static_cast<int>(std::bit_width(n - 1)) + 1) / 2);
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = i >> half, right = i & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const kernels::RandomKey k{key + round * kernels::weyl_step, key ^ (round + 1) * kernels::mix_first};
      left = std::exchange(right, left ^ (kernels::random_word(k, right) & mask));
    }
    i = left << half | right;
  } while (i >= n);
  return i;
}

Sampler::Sampler(std::vector<std::unique_ptr<TokenFile>> files, std::size_t length, std::uint64_t seed)
    : files_(std::move(files)), length_(length), seed_(seed) {
  std::size_t tokens = 0;
  for (const auto& file : files_) {
    first_.push_back(samples_);
    samples_ += file->tokens() == 0 ? 0 : (file->tokens() - 1) / length;
    tokens += file->tokens();
  }
  first_.push_back(samples_);
  if (samples_ == 0)
    throw std::invalid_argument(fmt::format(
        "data.train_path: {} tokens in {} files; expected {} in one of them, a sample's seq_length and one more",
        tokens, files_.size(), length + 1));
}

std::size_t Sampler::place(std::uint64_t number) const {
  const std::uint64_t epoch = number / samples_;
  const kernels::RandomKey key = kernels::random_key({.seed = seed_, .step = epoch, .tensor = 0x5A'3D1E});
  return permuted(number % samples_, samples_, key.start);
}

void Sampler::read(std::uint64_t number, std::int32_t* tokens, std::int32_t* labels) const {
  const std::size_t sample = place(number);
  const auto next = std::ranges::upper_bound(first_, sample);
  const auto file = static_cast<std::size_t>(next - first_.begin()) - 1;
  const std::size_t begin = (sample - first_[file]) * length_;
  files_[file]->read(begin, length_ + 1, tokens);
  for (std::size_t i = 0; i < length_ && labels != nullptr; ++i)
    labels[i] = files_[file]->counts(begin + i + 1) ? tokens[i + 1] : -100;
}

void Sampler::check(std::size_t vocabulary) const {
  constexpr std::size_t most = std::size_t{1} << 18;
  std::vector<std::int32_t> some(most);
  for (const auto& file : files_)
    for (std::size_t first = 0; first < file->tokens(); first += most) {
      const std::size_t n = std::min(most, file->tokens() - first);
      file->read(first, n, some.data());
      for (std::size_t i = 0; i < n; ++i)
        if (const std::int32_t t = some[i]; t < 0 || static_cast<std::size_t>(t) >= vocabulary)
          throw std::invalid_argument(
              fmt::format("model.vocab_size is {}: token {} of the data is {}", vocabulary, first + i, t));
    }
}

std::vector<DataFile> Sampler::identity() const {
  std::vector<DataFile> all;
  for (const auto& file : files_) all.push_back(file->identity());
  return all;
}

}  // namespace trellis::train
