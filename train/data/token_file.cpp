#include "train/data/token_file.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "text/refuse.h"
#include "train/data/megatron_index.h"
#include "train/data/unsupported_files.h"

namespace trellis::train {
namespace {

template <class T>
void widen(const std::vector<char>& bytes, std::size_t count, std::int32_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    out[i] = static_cast<std::int32_t>(value);
  }
}

}  // namespace

TokenFile::TokenFile(const std::filesystem::path& path, std::size_t token_bytes) : name_(path.string()) {
  namespace fs = std::filesystem;
  refuse_folder(path);
  // Files of numbers may be named with .bin or without it. A name without it may still contain a dot.
  const auto beside = [&](const char* ending) {
    return path.extension() == ".bin" ? fs::path(path).replace_extension(ending) : fs::path(name_ + ending);
  };
  const fs::path index = beside(".idx");
  const bool numbers = path.extension() == ".bin" || (!fs::exists(path) && fs::exists(index));
  const fs::path data = numbers ? beside(".bin") : path;
  if (numbers && !fs::exists(data) && fs::exists(index))
    text::refuse("{} is missing: expected the tokens of {} in it", data.string(), index.string());
  file_ = std::make_unique<InputFile>(data);
  if (!numbers) refuse_other_kinds(*file_);
  if (path.extension() == ".jsonl") {
    read_records();
    return;
  }
  if (numbers && fs::exists(index)) {
    MegatronIndex read = megatron_index(index.string(), InputFile(index).whole(), file_->size());
    width_ = read.width, documents_ = std::move(read.documents), tells_documents_ = true;
  } else if (numbers) {
    if (token_bytes != 2 && token_bytes != 4)
      text::refuse("data.token_bytes is {}: expected 2 or 4 for {}", token_bytes, name_);
    width_ = token_bytes;
  }
  if (file_->size() % width_ != 0)
    text::refuse("{}: {} bytes are no whole number of tokens of {} bytes", name_, file_->size(), width_);
  tokens_ = file_->size() / width_;
  if (documents_.empty()) documents_ = {0, tokens_};
  if (numbers && fs::exists(beside(".mask"))) open_mask(beside(".mask"));
}

void TokenFile::open_mask(const std::filesystem::path& path) {
  mask_ = std::make_unique<InputFile>(path);
  if (mask_->size() != tokens_)
    text::refuse("{} has {} bytes: expected {}, one for each token of {}", path.string(), mask_->size(), tokens_,
                 file_->path().string());
}

// A record is its prompt, its response, and the end of a line. Records follow each other without a gap: they are
// packed.
void TokenFile::read_records() {
  const std::string whole = file_->whole();
  const std::string_view all = whole;
  int line = 0;
  documents_ = {0}, tells_documents_ = true;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    ++line;
    const nlohmann::json record = nlohmann::json::parse(all.substr(at, end - at), nullptr, false);
    const bool blank = all.substr(at, end - at).find_first_not_of(" \t\r") == all.npos;
    at = end + 1;
    if (blank) continue;
    if (!record.is_object() || !record.contains("prompt") || !record["prompt"].is_string() ||
        !record.contains("response") || !record["response"].is_string())
      text::refuse(
          "{}, line {}: expected an object with \"prompt\" and \"response\"; `{}` makes tokens of other records", name_,
          line, prepare_command(file_->path()));
    const std::string prompt = record["prompt"], response = record["response"];
    text_ += prompt + response + "\n";
    counts_.resize(counts_.size() + prompt.size(), 0);
    counts_.resize(text_.size(), 1);
    documents_.push_back(text_.size());
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
  if (width_ == 1) return widen<std::uint8_t>(bytes, count, out);
  if (width_ == 2) return widen<std::uint16_t>(bytes, count, out);
  widen<std::int64_t>(bytes, count, out);
}

void TokenFile::read_counts(std::size_t first, std::size_t count, std::uint8_t* out) const {
  if (mask_) return mask_->read(first, count, out);
  if (counts_.empty())
    std::fill_n(out, count, std::uint8_t{1});
  else
    std::copy_n(counts_.begin() + static_cast<std::ptrdiff_t>(first), count, out);
}

std::int32_t TokenFile::at(std::size_t i) const {
  std::int32_t token = 0;
  read(i, 1, &token);
  return token;
}

DataFile TokenFile::identity() const {
  DataFile known{name_, file_->size(), file_->checksum()};
  if (mask_) known.bytes += mask_->size(), known.checksum = mask_->checksum(known.checksum);
  return known;
}

}  // namespace trellis::train
