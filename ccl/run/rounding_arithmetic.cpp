#include "ccl/run/rounding_arithmetic.h"

#include <algorithm>

#include "kernels/reduce/cast.h"

namespace trellis::ccl {

using kernels::DType;
using schedule::Op;
using schedule::Range;

void RoundingArithmetic::begin(const BoundProgram& bound) {
  bound_ = &bound;
  if (bound_->narrows() && !narrow_) narrow_ = std::make_unique<std::byte[]>(most * sizeof(std::uint32_t));
}

// Calls work(run, skipped, elements) for each run that has some of the `elements` elements from `first` on: how many of
// the run's elements come before them, and how many of them it has.
template <class Work>
void RoundingArithmetic::each_run(Range runs, std::size_t first, std::size_t elements, Work work) const {
  const ContributorRun* run = bound_->compiled->runs.data() + runs.first;
  for (; elements != 0; ++run) {
    if (first >= run->elements) {
      first -= run->elements;
      continue;
    }
    const std::size_t here = std::min(elements, run->elements - first);
    work(*run, first, here);
    elements -= here;
    first = 0;
  }
}

kernels::Random RoundingArithmetic::random_of(const ContributorRun& run, std::size_t skipped) const {
  kernels::Random random = bound_->how.random;
  random.tensor = run.of;
  random.first = run.first + skipped;
  return random;
}

std::byte* RoundingArithmetic::room() {
  if (rooms_used_ == rooms_.size()) rooms_.push_back(std::make_unique<std::byte[]>(most * sizeof(double)));
  return rooms_[rooms_used_++].get();
}

void RoundingArithmetic::round(const std::byte* from, std::byte* to, std::size_t elements,
                               const kernels::Random& random) {
  kernels::cast(bound_->type, from, bound_->wire, narrow_.get(), elements,
                {.rounding = bound_->how.rounding, .random = random});
  kernels::cast(bound_->wire, narrow_.get(), bound_->type, to, elements);
}

// Returns the values of a part of at most `most` elements: its memory itself, or a rounded copy in a buffer of rooms_.
const std::byte* RoundingArithmetic::read(const Part& part, Range runs) {
  const std::byte* const memory = at(part);
  bool rounds = false;
  if (bound_->narrows())
    each_run(runs, part.first, part.elements, [&](const ContributorRun& run, auto...) { rounds |= run.rounds; });
  if (!rounds) return memory;
  std::byte* const own = room();
  std::size_t done = 0;
  each_run(runs, part.first, part.elements, [&](const ContributorRun& run, std::size_t skipped, std::size_t n) {
    if (run.rounds)
      round(memory + done, own + done, n, random_of(run, skipped));
    else
      device_.copy(own + done, memory + done, n * kernels::size_of(bound_->type));
    done += n * kernels::size_of(bound_->type);
  });
  return own;
}

const std::byte* RoundingArithmetic::widened(const std::byte* piece, std::size_t elements) {
  if (!bound_->narrows()) return piece;
  std::byte* const own = room();
  kernels::cast(bound_->wire, piece, bound_->type, own, elements);
  return own;
}

void RoundingArithmetic::send(std::uint32_t step, std::size_t offset, std::byte* piece, std::size_t bytes) {
  const std::size_t size = kernels::size_of(bound_->wire), first = offset / size;
  const BufferRange& from = bound_->compiled->steps[step].from;
  const std::byte* memory = at({from, first, bytes / size});
  each_run(bound_->compiled->step_runs[step].from, first, bytes / size,
           [&](const ContributorRun& run, std::size_t skipped, std::size_t n) {
             kernels::cast(bound_->type, memory, bound_->wire, piece, n,
                           {.rounding = bound_->how.rounding, .random = random_of(run, skipped)});
             memory += n * kernels::size_of(bound_->type);
             piece += n * size;
           });
}

void RoundingArithmetic::take(std::uint32_t step, std::size_t offset, const std::byte* piece, std::size_t bytes) {
  const CompiledStep& flat = bound_->compiled->steps[step];
  const std::size_t size = kernels::size_of(bound_->wire);
  const Part part{flat.to, offset / size, bytes / size};
  if (flat.op == Op::recv_reduce)
    add(flat, bound_->compiled->step_runs[step], part.first, part.elements, piece);
  else if (bound_->narrows())
    kernels::cast(bound_->wire, piece, bound_->type, at(part), part.elements);
  else
    device_.copy(at(part), piece, bytes);
}

void RoundingArithmetic::local(std::uint32_t step) {
  const CompiledStep& flat = bound_->compiled->steps[step];
  const StepContributorRuns& runs = bound_->compiled->step_runs[step];
  if (flat.op == Op::copy)
    copy(flat, runs);
  else
    add(flat, runs, 0, flat.to.elements, nullptr);
}

void RoundingArithmetic::copy(const CompiledStep& flat, const StepContributorRuns& runs) {
  const BufferRange* const further = bound_->compiled->places.data() + flat.further;
  for (std::size_t done = 0; done < flat.to.elements; done += most) {
    const std::size_t n = std::min(most, flat.to.elements - done), bytes = n * kernels::size_of(bound_->type);
    rooms_used_ = 0;
    const std::byte* const source = read({flat.from, done, n}, runs.from);
    device_.copy(at({flat.to, done, n}), source, bytes);
    for (std::uint32_t i = 0; i < flat.further_count; ++i) device_.copy(at({further[i], done, n}), source, bytes);
  }
}

void RoundingArithmetic::add(const CompiledStep& flat, const StepContributorRuns& runs, std::size_t first,
                             std::size_t elements, const std::byte* arriving) {
  const CompiledProgram& c = *bound_->compiled;
  const std::size_t size = kernels::size_of(bound_->type);
  for (std::size_t done = 0; done < elements; done += most) {
    const std::size_t from = first + done, block = std::min(most, elements - done);
    rooms_used_ = 0;
    sources_.assign(1, read({flat.from, from, block}, runs.from));
    for (std::uint32_t i = 0; i < flat.further_count; ++i)
      sources_.push_back(read({c.places[flat.further + i], from, block}, c.further_runs[runs.further + i]));
    if (arriving != nullptr) sources_.push_back(widened(arriving + done * kernels::size_of(bound_->wire), block));
    std::byte* to = at({flat.to, from, block});
    each_run(runs.to, from, block, [&](const ContributorRun& run, std::size_t skipped, std::size_t n) {
      kernels::ReduceOptions how = bound_->how;
      how.random = random_of(run, skipped);
      if (run.rounds) how.stores = kernels::Stores::cached;
      device_.reduce(bound_->op, bound_->type, sources_, to, n, how);
      if (bound_->narrows() && run.rounds) round(to, to, n, how.random);
      for (const void*& s : sources_) s = static_cast<const std::byte*>(s) + n * size;
      to += n * size;
    });
  }
}

void RoundingArithmetic::end() {
  if (!bound_->narrows()) return;
  std::size_t done = 0;
  const std::size_t elements = bound_->compiled->output_elements, size = kernels::size_of(bound_->type);
  std::byte* const output = bound_->at({schedule::Buffer::output});
  each_run(bound_->compiled->output_runs, 0, elements, [&](const ContributorRun& run, std::size_t, std::size_t n) {
    for (std::size_t i = 0; run.rounds && i < n; i += most)
      round(output + (done + i) * size, output + (done + i) * size, std::min(most, n - i), random_of(run, i));
    done += n;
  });
}

}  // namespace trellis::ccl
