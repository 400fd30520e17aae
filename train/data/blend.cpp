#include "train/data/blend.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "text/refuse.h"

namespace trellis::train {
namespace {

constexpr std::size_t round_length = 65'536;

}  // namespace

Blend::Blend(std::vector<std::shared_ptr<const DataSource>> sources, const std::vector<double>& weights)
    : sources_(std::move(sources)), count_(sources_.size()) {
  if (sources_.empty() || weights.size() != sources_.size())
    text::refuse("{} weights of {} data sets: expected one for each", weights.size(), sources_.size());
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (const double w : weights)
    if (!(w > 0) || !std::isfinite(w) || !std::isfinite(sum) || w / sum * round_length < 1)
      text::refuse("weight {} of a data set, of {} in all: expected more than one part in {}", w, sum, round_length);
  // The source that lacks most of its share is next.
  for (std::size_t place = 0; place < round_length; ++place) {
    std::size_t next = 0;
    double most = -1;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double lacks = weights[i] / sum * static_cast<double>(place + 1) - count_[i];
      if (lacks > most) most = lacks, next = i;
    }
    source_.push_back(static_cast<std::uint32_t>(next));
    rank_.push_back(count_[next]++);
  }
}

Blend::Choice Blend::choice(std::uint64_t number) const {
  const std::uint64_t round = number / round_length, place = number % round_length;
  const std::size_t source = source_[place];
  return {source, round * count_[source] + rank_[place]};
}

std::uint64_t Blend::samples() const {
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const double rounds = static_cast<double>(sources_[i]->samples()) / count_[i];
    most = std::max(most, static_cast<std::uint64_t>(std::ceil(rounds * round_length)));
  }
  return most;
}

void Blend::read(std::uint64_t number, const TokenSample& out) const {
  const Choice c = choice(number);
  sources_[c.source]->read(c.number, out);
}

Blend::~Blend() = default;

std::vector<DataFile> Blend::identity() const {
  std::vector<DataFile> all;
  for (const auto& source : sources_) std::ranges::copy(source->identity(), std::back_inserter(all));
  return all;
}

}  // namespace trellis::train
