#include "kernels/measure/operand_layout.h"

#include <algorithm>
#include <cmath>

#include "kernels/dispatch/parallel.h"

namespace trellis::kernels {
namespace {

constexpr std::size_t line = 64, page = 4096;

DType read_type(const TimedKernel& s, int i) {
  return s.kernel->reads[std::min<std::size_t>(static_cast<std::size_t>(i), s.kernel->reads.size() - 1)];
}

// Puts one operand after another. Each begins at another line of a page, so that no two of them fall on the same sets
// of a cache.
class Places {
 public:
  std::size_t next(std::size_t bytes) {
    const std::size_t at = free_ + 9 * line * count_++;
    free_ += (bytes + page - 1) / page * page + page;
    end_ = at + bytes;
    return at;
  }
  std::size_t end() const { return end_; }

 private:
  std::size_t free_ = 0, count_ = 0, end_ = 0;
};

}  // namespace

double TrafficPerElement::distance(const TrafficPerElement& other) const {
  const auto part = [](const TrafficPerElement& m, double v) { return v / (m.read + m.written + m.updated); };
  return std::fabs(part(*this, read) - part(other, other.read)) +
         std::fabs(part(*this, written) - part(other, other.written)) +
         std::fabs(part(*this, updated) - part(other, other.updated));
}

TrafficPerElement mix_of(const TimedKernel& s) {
  TrafficPerElement mix;
  for (int i = 0; i < s.sources; ++i) mix.read += static_cast<double>(size_of(read_type(s, i)));
  for (std::size_t w = 0; w < s.kernel->writes.size() && !s.kernel->sums; ++w)
    (s.kernel->updates_operand(w) ? mix.updated : mix.written) += static_cast<double>(size_of(s.kernel->writes[w]));
  return mix;
}

std::size_t touched_bytes(WorkingSetLevel r, const Cpu& cpu) {
  if (r == WorkingSetLevel::l1) return cpu.l1_bytes / 2;
  if (r == WorkingSetLevel::l2) return cpu.l2_bytes / 2;
  return cpu.out_of_cache() * 3;
}

OperandLayout layout_of(const TimedKernel& s, std::size_t touched) {
  OperandLayout layout;
  layout.n = std::max(line, static_cast<std::size_t>(static_cast<double>(touched) / mix_of(s).moved()) / line * line);
  const std::size_t written = s.kernel->sums ? parts_of(layout.n) : layout.n;
  Places places;
  for (const DType type : s.kernel->writes) layout.writes.push_back(places.next(written * size_of(type)));
  for (int i = 0; i < s.sources; ++i) layout.reads.push_back(places.next(layout.n * size_of(read_type(s, i))));
  layout.end = places.end();
  return layout;
}

std::size_t arena_bytes(const std::vector<TimedKernel>& subjects, const Cpu& cpu) {
  std::size_t most = 0;
  for (const TimedKernel& s : subjects)
    for (const WorkingSetLevel r : regimes) most = std::max(most, layout_of(s, touched_bytes(r, cpu)).end);
  return (most + page - 1) / page * page;
}

}  // namespace trellis::kernels
