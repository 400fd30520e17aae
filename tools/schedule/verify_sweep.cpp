#include "tools/schedule/verify_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "tools/schedule/proof.h"
#include "tools/schedule/schedule_source.h"

namespace trellis::tools {
namespace {

using schedule::Collective;
using schedule::Rank;
using schedule::Request;

constexpr std::size_t most_flat_shapes = 4, most_deep_shapes = 2;
constexpr Rank few = 17;  // up to so many ranks, every combination is tried
constexpr Rank few_roots = 5;
constexpr std::size_t most_faults = 3;  // reported for each row

struct Job {
  std::size_t row = 0;
  AlgorithmRequest asked;
};

struct Result {
  enum class Kind : std::uint8_t { undone, proved, folded, elsewhere, refused, failed } kind = Kind::undone;
  std::string text;  // why it was refused, or how it failed
  std::int64_t steps = 0;
  double seconds = 0;
};

// Keeps the shapes whose dimensions differ least.
void keep_squarest(std::vector<std::vector<Rank>>& all, std::size_t most) {
  std::ranges::stable_sort(all, {}, [](const std::vector<Rank>& dims) {
    return *std::ranges::max_element(dims) - *std::ranges::min_element(dims);
  });
  if (all.size() > most) all.resize(most);
}

std::vector<Rank> roots(Collective c, Rank ranks) {
  if (!rooted(c) && c != Collective::send_recv) return {0};
  std::vector<Rank> some;
  if (ranks <= few_roots)
    for (Rank r = 0; r < ranks; ++r) some.push_back(r);
  else
    some = {0, ranks / 2, ranks - 1};
  return some;
}

// Each rank sends to the next, except every fifth: so some ranks only send, only receive, or do neither.
std::vector<schedule::Pair> some_pairs(Rank ranks) {
  std::vector<schedule::Pair> pairs;
  for (Rank r = 0; r < ranks; ++r)
    if (r % 5 != 3) pairs.push_back({r, (r + 1) % ranks});
  return pairs;
}

void add_requests(const schedule::Algorithm& algorithm, Collective collective, Rank ranks, std::size_t row,
                  std::vector<Job>& jobs) {
  const auto all_shapes = shapes(ranks);
  for (const std::vector<Rank>& dims : all_shapes)
    for (const bool in_place : {false, true})
      for (const std::int32_t channels : {1, 2})
        for (const std::int32_t segments : {1, 2}) {
          // With many ranks, besides one channel with one segment only two with two are tried, on one row and one grid.
          const bool plain = channels == 1 && segments == 1;
          const bool familiar = dims == all_shapes[0] || (all_shapes.size() > 1 && dims == all_shapes[1]);
          if (ranks > few && !plain && (channels != segments || !familiar)) continue;
          for (const Rank root : roots(collective, ranks)) {
            Request r{.operation = {.collective = collective, .root = root, .in_place = in_place},
                      .dims = dims,
                      .channels = channels};
            r.segments = segments;
            if (collective == Collective::send_recv) r.operation.peer = ranks - 1 - root;
            if (collective == Collective::permute) r.operation.pairs = some_pairs(ranks);
            jobs.push_back({row, {&algorithm, std::move(r)}});
          }
        }
}

// Whether the algorithm refuses even the plain request of this shape: then it is not for such shapes.
bool is_for_other_shapes(const AlgorithmRequest& a) {
  return !refusal(*a.algorithm,
                  {.operation = {.collective = a.request.operation.collective,
                                 .peer = a.request.operation.collective == Collective::send_recv ? a.request.ranks() - 1
                                                                                                 : 0,
                                 .pairs = a.request.operation.pairs},
                   .dims = a.request.dims})
              .empty();
}

Result work(const AlgorithmRequest& a) {
  const auto start = std::chrono::steady_clock::now();
  Result result;
  try {
    result.text = refusal(*a.algorithm, a.request);
    result.kind = Result::Kind::refused;
    if (!result.text.empty()) {
      if (is_for_other_shapes(a)) result.kind = Result::Kind::elsewhere;
    } else {
      const bool folded = too_large(a);
      const ProofReport proof = prove(a, folded);
      result.kind = !proof.ok() ? Result::Kind::failed : folded ? Result::Kind::folded : Result::Kind::proved;
      result.steps = proof.steps;
      if (!proof.ok()) result.text = fmt::format("{}: {}", proof.of, proof.fault);
    }
  } catch (const std::exception& error) {
    // A request that is not refused must be made: any exception is the algorithm's fault.
    result.kind = Result::Kind::failed;
    result.text = fmt::format("{}: {}", in_words(a), error.what());
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::vector<Result> work_all(const std::vector<Job>& jobs, unsigned threads,
                             const std::function<bool(std::size_t, std::size_t)>& progress) {
  std::vector<Result> results(jobs.size());
  std::atomic<std::size_t> next = 0, done = 0;
  std::atomic<bool> stopped = false;
  std::mutex mutex;
  std::condition_variable finished;
  const auto worker = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      if (!stopped) results[i] = work(jobs[i].asked);
      if (++done < jobs.size()) continue;
      const std::lock_guard lock(mutex);
      finished.notify_all();
    }
  };
  std::vector<std::jthread> pool;
  for (unsigned i = 0; i < std::max(threads, 1u); ++i) pool.emplace_back(worker);
  std::unique_lock lock(mutex);
  while (!finished.wait_for(lock, std::chrono::milliseconds(200), [&] { return done >= jobs.size(); }))
    stopped = stopped || !progress(done, jobs.size());
  return results;
}

// Refusals that differ only in their numbers are counted as one.
std::string without_numbers(const std::string& reason) {
  std::string shape;
  for (char c : reason) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit)
      shape += c;
    else if (shape.empty() || shape.back() != '#')
      shape += '#';
  }
  return shape;
}

void add_up(const std::vector<Job>& jobs, std::vector<Result>& results, std::vector<VerifySweepResult>& rows) {
  struct Reason {
    std::int64_t times = 0;
    std::string first;
  };
  std::vector<std::map<std::string, Reason>> reasons(rows.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    VerifySweepResult& row = rows[jobs[i].row];
    Result& result = results[i];
    row.steps += result.steps;
    row.seconds += result.seconds;
    switch (result.kind) {
      case Result::Kind::proved:
        ++row.proved;
        break;
      case Result::Kind::folded:
        ++row.folded;
        break;
      case Result::Kind::failed:
        ++row.failed;
        if (row.faults.size() < most_faults) row.faults.push_back(std::move(result.text));
        break;
      case Result::Kind::undone:
        ++row.undone;
        break;
      case Result::Kind::elsewhere:
      case Result::Kind::refused:
        ++(result.kind == Result::Kind::refused ? row.refused : row.elsewhere);
        Reason& reason = reasons[jobs[i].row][without_numbers(result.text)];
        if (reason.times++ == 0) reason.first = std::move(result.text);
    }
  }
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (!reasons[r].empty())
      rows[r].reason =
          std::ranges::max_element(reasons[r], {}, [](const auto& x) { return x.second.times; })->second.first;
}

}  // namespace

std::vector<std::vector<Rank>> shapes(Rank ranks) {
  std::vector<std::vector<Rank>> all{{ranks}}, flat, deep;
  for (Rank a = 2; std::int64_t{a} * 2 <= ranks; ++a) {
    if (ranks % a != 0) continue;
    flat.push_back({a, ranks / a});
    for (Rank b = 2; std::int64_t{b} * 2 <= ranks / a; ++b)
      if (ranks / a % b == 0) deep.push_back({a, b, ranks / a / b});
  }
  keep_squarest(flat, most_flat_shapes);
  keep_squarest(deep, most_deep_shapes);
  if (ranks > 1 && ranks <= 4) flat.push_back({1, ranks}), flat.push_back({ranks, 1});
  all.insert(all.end(), flat.begin(), flat.end());
  all.insert(all.end(), deep.begin(), deep.end());
  return all;
}

std::vector<VerifySweepResult> sweep(const VerifySweepOptions& wish,
                                     const std::function<bool(std::size_t, std::size_t)>& progress) {
  std::vector<Job> jobs;
  std::vector<VerifySweepResult> rows;
  for (const auto& [name, algorithm] : schedule::algorithms()) {
    if (!wish.algorithm.empty() && name != wish.algorithm) continue;
    for (Collective c : algorithm.serves) {
      if (!wish.collective.empty() && schedule::name(c) != wish.collective) continue;
      rows.push_back({.algorithm = name, .collective = c, .reason = {}, .faults = {}});
      for (Rank n : wish.ranks) add_requests(algorithm, c, n, rows.size() - 1, jobs);
    }
  }
  std::vector<Result> results = work_all(jobs, wish.threads, progress);
  add_up(jobs, results, rows);
  return rows;
}

}  // namespace trellis::tools
