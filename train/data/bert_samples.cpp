#include "train/data/bert_samples.h"

#include <algorithm>

#include "kernels/types/random.h"
#include "text/refuse.h"

namespace trellis::train {
namespace {

constexpr std::size_t marks = 3;                                  // one before the first part, one after each
constexpr std::uint64_t guessed = 15, masked = 80, changed = 90;  // percent of tokens; then cumulative percent of those

}  // namespace

BertSamples::BertSamples(const DataSource& source, std::size_t length, std::size_t vocabulary,
                         const SpecialTokens& special, std::uint64_t seed)
    : source_(source), length_(length), vocabulary_(vocabulary), special_(special), seed_(seed) {
  if (length < marks + 2)
    text::refuse("data.seq_length is {}: expected {} at least, for two parts and their marks", length, marks + 2);
  for (std::int32_t token : {special.begin, special.separator, special.mask})
    if (token < 0 || static_cast<std::size_t>(token) >= vocabulary)
      text::refuse("data.special_tokens: {} is none of {} tokens", token, vocabulary);
}

bool BertSamples::read(std::uint64_t number, std::int32_t* tokens, std::int32_t* types, std::int32_t* labels) const {
  const kernels::RandomKey key = kernels::random_key({.seed = seed_, .step = number, .tensor = 0xBE'127});
  std::uint64_t drawn = 0;
  const auto draw = [&](std::uint64_t below) { return kernels::random_word(key, drawn++) % below; };
  const std::size_t text = length_ - marks, first = text / 2;
  std::vector<std::int32_t> stretch(length_);
  source_.read(number, {.tokens = stretch.data()});
  const bool follows = draw(2) == 0;
  const auto put = [&](std::size_t at, std::int32_t token, std::int32_t type) { tokens[at] = token, types[at] = type; };
  put(0, special_.begin, 0);
  for (std::size_t i = 0; i < first; ++i) put(1 + i, stretch[i], 0);
  put(first + 1, special_.separator, 0);
  if (!follows)
    source_.read(number + 1 + draw(std::max<std::uint64_t>(1, source_.samples() - 1)), {.tokens = stretch.data()});
  for (std::size_t i = first; i < text; ++i) put(2 + i, stretch[i], 1);
  put(length_ - 1, special_.separator, 1);
  for (std::size_t i = 0; i < length_; ++i) {
    const bool mark = i == 0 || i == first + 1 || i == length_ - 1;
    labels[i] = -100;
    if (mark || draw(100) >= guessed) continue;
    labels[i] = tokens[i];
    const std::uint64_t what = draw(100);
    if (what < masked)
      tokens[i] = special_.mask;
    else if (what < changed)
      tokens[i] = static_cast<std::int32_t>(draw(vocabulary_));
  }
  return follows;
}

}  // namespace trellis::train
