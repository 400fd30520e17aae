#include "train/data/sampler.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/types/random.h"
#include "text/refuse.h"

namespace trellis::train {

std::uint64_t permuted(std::uint64_t i, std::uint64_t n, std::uint64_t key) {
  // A Feistel network on an even number of bits that hold n - 1, applied again until the result is below n.
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

Sampler::Sampler(std::vector<std::unique_ptr<TokenFile>> files, std::size_t length, std::uint64_t seed,
                 const DocumentOptions& options)
    : files_(std::move(files)), length_(length), seed_(seed), options_(options) {
  std::size_t tokens = 0;
  for (const auto& file : files_) {
    first_.push_back(samples_);
    tokens += file->tokens();
    if (options.whole_documents)
      samples_ += file->documents().size() - 1;
    else
      samples_ += file->tokens() == 0 ? 0 : (file->tokens() - 1) / length;
  }
  first_.push_back(samples_);
  if (samples_ == 0)
    text::refuse(
        "data.train_path: {} tokens in {} files; expected {} in one of them, a sample's seq_length and one more",
        tokens, files_.size(), length + 1);
}

std::uint64_t Sampler::place(std::uint64_t number) const {
  const std::uint64_t epoch = number / samples_;
  const kernels::RandomKey key = kernels::random_key({.seed = seed_, .step = epoch, .tensor = 0x5A'3D1E});
  return permuted(number % samples_, samples_, key.start);
}

Sampler::Stretch Sampler::stretch(std::uint64_t number) const {
  const std::uint64_t sample = place(number);
  const auto next = std::ranges::upper_bound(first_, sample);
  const auto i = static_cast<std::size_t>(next - first_.begin()) - 1;
  const TokenFile& file = *files_[i];
  const std::uint64_t in_file = sample - first_[i];
  if (!options_.whole_documents) return {&file, in_file * length_, length_ + 1};
  const std::uint64_t begin = file.documents()[in_file], end = file.documents()[in_file + 1];
  return {&file, begin, std::min<std::size_t>(end - begin, length_ + 1)};
}

void Sampler::read(std::uint64_t number, const TokenSample& out) const {
  const Stretch s = stretch(number);
  std::vector<std::int32_t> tokens(s.count);
  s.file->read(s.first, s.count, tokens.data());
  const std::size_t known = std::min(s.count, length_);
  std::fill_n(std::copy_n(tokens.begin(), known, out.tokens), length_ - known, 0);
  // The end of the document that each position is in.
  auto end = std::ranges::upper_bound(s.file->documents(), s.first);
  const auto ends_at = [&](std::size_t i) {
    while (end != s.file->documents().end() && *end <= s.first + i) ++end;
    return end == s.file->documents().end() ? s.first + s.count : *end;
  };
  if (out.labels != nullptr) {
    std::vector<std::uint8_t> counts(s.count);
    s.file->read_counts(s.first, s.count, counts.data());
    for (std::size_t i = 0; i < length_; ++i) {
      const bool predicts = i + 1 < s.count && counts[i + 1] != 0;
      out.labels[i] = predicts && !(options_.mask_ends && ends_at(i) == s.first + i + 1) ? tokens[i + 1] : no_label;
    }
  }
  if (out.starts == nullptr) return;
  end = std::ranges::upper_bound(s.file->documents(), s.first);
  for (std::size_t i = 0, start = 0; i < length_; ++i) {
    if (i > 0 && i < known && ends_at(i - 1) == s.first + i) start = i;
    out.starts[i] = static_cast<std::int32_t>(start);
  }
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
          text::refuse("model.vocab_size is {}: token {} of {} is {}", vocabulary, first + i, file->name(), t);
    }
}

Sampler::~Sampler() = default;

std::vector<DataFile> Sampler::identity() const {
  std::vector<DataFile> all;
  for (const auto& file : files_) all.push_back(file->identity());
  return all;
}

}  // namespace trellis::train
