#include "tests/schedule/buffers.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/proof/reference_interpreter.h"

namespace trellis::schedule {
namespace {

using enum Collective;
using Words = std::vector<std::uint32_t>;

std::uint32_t rubbish(std::mt19937& random) { return static_cast<std::uint32_t>(random()); }

// Lengths of the caller's blocks, in words, and of the chunks cut from them.
class Lengths {
 public:
  Lengths(const Task& t, std::mt19937& random) : t_(t) {
    const std::size_t ranks = t.ranks, sizes = t.operation.collective == all_to_all_v ? ranks * ranks
                                               : uneven(t.operation.collective)       ? ranks
                                                                                      : 1;
    for (std::size_t i = 0; i < sizes; ++i) blocks_.push_back(some_length(random));
  }

  std::int64_t of_block(Rank rank, Buffer buffer, std::int64_t block) const {
    const bool given = buffer == Buffer::input;
    if (t_.operation.collective == all_gather_v) return blocks_[given ? rank : block];
    if (t_.operation.collective == reduce_scatter_v) return blocks_[given ? block : rank];
    if (t_.operation.collective == all_to_all_v)
      return blocks_[given ? rank * t_.ranks + block : block * t_.ranks + rank];
    return blocks_[0];
  }

  std::int64_t of_chunk(Rank rank, Buffer buffer, std::int64_t chunk) const {
    const std::int64_t all = of_block(rank, buffer, chunk / t_.pieces), each = (all + t_.pieces - 1) / t_.pieces;
    return std::clamp<std::int64_t>(all - chunk % t_.pieces * each, 0, each);
  }

  // The length of a scratch chunk: that of the data chunk with this number in the larger of the two buffers.
  std::int64_t like(Rank rank, std::int64_t chunk) const {
    const bool scatters = t_.operation.collective == reduce_scatter || t_.operation.collective == reduce_scatter_v ||
                          t_.operation.collective == scatter;
    return of_chunk(rank, scatters ? Buffer::input : Buffer::output, chunk);
  }

 private:
  std::int64_t some_length(std::mt19937& random) const {
    if (t_.even) return t_.pieces * (1 + random() % 3);
    if (uneven(t_.operation.collective) && random() % 8 == 0) return 0;
    const std::int64_t length = 1 + random() % (3 * t_.pieces);
    return length % t_.pieces == 0 ? length + 1 : length;
  }

  const Task& t_;
  std::vector<std::int64_t> blocks_;
};

// The collectives as the caller sees them: every rank's input, and the output it must get.
class Exchange {
 public:
  Exchange(const Task& t, const Lengths& lengths, std::mt19937& random) : t_(t), lengths_(lengths) {
    for (Rank r = 0; r < t.ranks; ++r) {
      Words given;
      for (std::int64_t left = given_length(r); left > 0; --left)
        given.push_back(t.operation.collective == barrier ? 1u << r % 32 : rubbish(random));
      given_.push_back(given);
    }
  }

  const Words& given(Rank r) const { return given_[r]; }

  // A barrier requires that each rank has arrived at least once.
  std::uint32_t joined(std::uint32_t a, std::uint32_t b) const {
    return t_.operation.collective == barrier ? a | b : a + b;
  }

  Words wanted(Rank rank) const {
    const bool chosen = rank == t_.operation.root;
    switch (t_.operation.collective) {
      case reduce:
        return chosen ? sum_of(0) : Words{};
      case reduce_scatter:
      case reduce_scatter_v:
        return sum_of(rank);
      case gather:
        return chosen ? all_for(0) : Words{};
      case all_gather:
      case all_gather_v:
        return all_for(0);
      case all_to_all:
      case all_to_all_v:
        return all_for(rank);
      case broadcast:
        return given_[t_.operation.root];
      case scatter:
        return block(t_.operation.root, rank);
      case send_recv:
        return rank == t_.operation.peer ? given_[t_.operation.root] : Words{};
      case permute:
        for (const Pair& pair : t_.operation.pairs)
          if (pair.target == rank) return given_[pair.source];
        return {};
      default:
        return sum_of(0);
    }
  }

 private:
  std::int64_t given_length(Rank r) const {
    const auto sends = [&](const Pair& pair) { return pair.source == r; };
    const bool from_root = t_.operation.collective == broadcast || t_.operation.collective == scatter ||
                           t_.operation.collective == send_recv;
    if (from_root && r != t_.operation.root) return 0;
    if (t_.operation.collective == permute && std::ranges::none_of(t_.operation.pairs, sends)) return 0;
    const bool one = !by_block(t_.operation.collective) || t_.operation.collective == all_gather ||
                     t_.operation.collective == all_gather_v || t_.operation.collective == gather;
    std::int64_t length = 0;
    for (std::int64_t b = 0; b < (one ? 1 : t_.ranks); ++b) length += lengths_.of_block(r, Buffer::input, b);
    return length;
  }

  Words block(Rank r, std::int64_t number) const {
    auto begin = given_[r].begin();
    for (std::int64_t b = 0; b < number; ++b) begin += lengths_.of_block(r, Buffer::input, b);
    return {begin, begin + lengths_.of_block(r, Buffer::input, number)};
  }
  Words sum_of(std::int64_t number) const {
    Words total = block(0, number);
    for (Rank r = 1; r < t_.ranks; ++r)
      std::ranges::transform(total, block(r, number), total.begin(), [&](auto a, auto b) { return joined(a, b); });
    return total;
  }
  Words all_for(std::int64_t number) const {
    Words all;
    for (Rank r = 0; r < t_.ranks; ++r)
      for (std::uint32_t word : block(r, number)) all.push_back(word);
    return all;
  }

  const Task& t_;
  const Lengths& lengths_;
  std::vector<Words> given_;
};

// A chunk in memory, or a temporary sum. Assignment overwrites the memory.
class Chunk {
 public:
  explicit Chunk(std::span<std::uint32_t> place) : place_(place) {}
  explicit Chunk(Words sum) : sum_(std::move(sum)) {}
  Chunk(const Chunk&) = default;
  Chunk& operator=(const Chunk& other) {
    must_fit(other);
    std::ranges::copy(other.words(), place_.begin());
    return *this;
  }
  ~Chunk() = default;

  std::span<const std::uint32_t> words() const {
    if (sum_.empty()) return place_;
    return sum_;
  }
  void must_fit(const Chunk& other) const {
    if (words().size() == other.words().size()) return;
    throw std::length_error(fmt::format("a chunk of {} words meets one of {}", words().size(), other.words().size()));
  }

 private:
  Words sum_;
  std::span<std::uint32_t> place_;
};

// The ranks' memory. Each rank's cells are contiguous, so that a run of chunks is a run of words.
class Machine {
 public:
  Machine(const Schedule& s, std::mt19937& random)
      : s_(s), lengths_(s.task, random), exchange_(s.task, lengths_, random) {
    words_.resize(s.ranks());
    chunks_.resize(s.ranks());
    for (Rank r = 0; r < s.ranks(); ++r) {
      starts_.push_back({0});
      for (std::int64_t length : cell_lengths(r)) starts_[r].push_back(starts_[r].back() + length);
      words_[r].resize(starts_[r].back());
      for (std::uint32_t& word : words_[r]) word = rubbish(random);
      for (std::size_t i = 0; i + 1 < starts_[r].size(); ++i)
        chunks_[r].emplace_back(std::span(words_[r].data() + starts_[r][i], words_[r].data() + starts_[r][i + 1]));
      std::ranges::copy(exchange_.given(r), words_[r].begin() + input(r).first);
    }
  }

  void run() {
    interpret(s_, chunks_, [&](std::span<const Chunk* const> sources) {
      const auto first = sources.front()->words();
      Words total(first.begin(), first.end());
      for (const Chunk* source : sources.subspan(1)) {
        source->must_fit(*sources.front());
        std::ranges::transform(total, source->words(), total.begin(),
                               [&](auto a, auto b) { return exchange_.joined(a, b); });
      }
      return Chunk(std::move(total));
    });
  }

  // Returns the first error in the callers' buffers.
  std::string compare() const {
    for (Rank r = 0; r < s_.ranks(); ++r) {
      const Part in = input(r), out = output(r);
      if (!std::ranges::equal(std::span(words_[r]).subspan(out.first, out.end - out.first), exchange_.wanted(r)))
        return fmt::format("rank {}'s output is wrong", r);
      for (std::int64_t i = in.first; i < in.end; ++i)
        if ((i < out.first || i >= out.end) && words_[r][i] != exchange_.given(r)[i - in.first])
          return fmt::format("rank {}'s input was written to", r);
    }
    return "";
  }

 private:
  struct Part {
    std::int64_t first, end;  // in words
  };
  Part input(Rank r) const { return part(r, cells(s_.task, r).input, input_chunks(s_.task, r)); }
  Part output(Rank r) const { return part(r, cells(s_.task, r).output, output_chunks(s_.task, r)); }
  Part part(Rank r, std::int64_t cell, std::int64_t count) const {
    return {starts_[r][cell], starts_[r][cell + count]};
  }

  std::vector<std::int64_t> cell_lengths(Rank r) const {
    const Cells base = cells(s_.task, r);
    std::vector<std::int64_t> found(base.scratch, -1);
    const auto note = [&](Buffer buffer, std::int64_t chunk) {
      std::int64_t& cell = found.at(base.at(buffer, chunk));
      const std::int64_t length = lengths_.of_chunk(r, buffer, chunk);
      if (cell >= 0 && cell != length)
        throw std::length_error(fmt::format("rank {}: {} and {} words share their place", r, cell, length));
      cell = length;
    };
    for (std::int64_t c = 0; c < input_chunks(s_.task, r); ++c) note(Buffer::input, c);
    for (std::int64_t c = 0; c < output_chunks(s_.task, r); ++c) note(Buffer::output, c);
    for (const ScratchSize& room : s_.programs[r].scratch_sizes)
      for (std::int32_t i = 0; i < room.count; ++i) found.push_back(lengths_.like(r, std::int64_t{room.like} + i));
    found.resize(base.scratch + s_.programs[r].scratch, lengths_.like(r, 0));
    return found;
  }

  const Schedule& s_;
  Lengths lengths_;
  Exchange exchange_;
  std::vector<Words> words_;
  std::vector<std::vector<std::int64_t>> starts_;  // start of each cell in words, plus an end mark
  Memory<Chunk> chunks_;
};

}  // namespace

std::string run_on_buffers(const Schedule& s, std::mt19937& random) {
  try {
    Machine machine(s, random);
    machine.run();
    return machine.compare();
  } catch (const std::length_error& e) {
    return e.what();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

}  // namespace trellis::schedule
