#include "train/data/tokens.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "kernels/types/random.h"

namespace trellis::train {
namespace {

// What Megatron's index calls types, in bytes; 0: floats, which are no tokens.
constexpr std::size_t megatron_widths[] = {0, 1, 1, 2, 4, 8, 0, 0, 2};

template <class T>
T word_at(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat s = {};
  if (fd < 0 || fstat(fd, &s) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    throw std::system_error(error, std::generic_category(), path.string());
  }
  size_ = static_cast<std::size_t>(s.st_size);
  void* const at = size_ == 0 ? nullptr : mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
  const int error = errno;
  close(fd);
  if (at == MAP_FAILED) throw std::system_error(error, std::generic_category(), path.string());
  data_ = static_cast<const std::byte*>(at);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

TokenFile::TokenFile(const std::filesystem::path& path, std::size_t token_bytes) : name_(path.string()) {
  std::filesystem::path data = path, index = path;
  index.replace_extension(".idx");
  const bool numbers = path.extension() == ".bin" || (!std::filesystem::exists(path) && std::filesystem::exists(index));
  if (numbers) data.replace_extension(".bin");
  file_ = std::make_unique<MappedFile>(data);
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
  const MappedFile index(path);
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
  const std::string_view all(reinterpret_cast<const char*>(file_->data()), file_->size());
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

std::int32_t TokenFile::at(std::size_t i) const {
  if (!counts_.empty()) return static_cast<unsigned char>(text_[i]);
  const std::byte* const at = file_->data() + i * width_;
  if (width_ == 1) return word_at<std::uint8_t>(at);
  if (width_ == 2) return word_at<std::uint16_t>(at);
  if (width_ == 4) return word_at<std::int32_t>(at);
  return static_cast<std::int32_t>(word_at<std::int64_t>(at));
}

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
  for (std::size_t i = 0; i <= length_; ++i) tokens[i] = files_[file]->at(begin + i);
  for (std::size_t i = 0; i < length_ && labels != nullptr; ++i)
    labels[i] = files_[file]->counts(begin + i + 1) ? tokens[i + 1] : -100;
}

void Sampler::check(std::size_t vocabulary) const {
  for (const auto& file : files_)
    for (std::size_t i = 0; i < file->tokens(); ++i)
      if (const std::int32_t t = file->at(i); t < 0 || static_cast<std::size_t>(t) >= vocabulary)
        throw std::invalid_argument(
            fmt::format("model.vocab_size is {}: token {} of the data is {}", vocabulary, i, t));
}

}  // namespace trellis::train
