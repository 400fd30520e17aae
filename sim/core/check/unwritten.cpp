#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/core/check/check.h"
#include "sim/core/program/dependency_tracker.h"
#include "sim/core/run/core_memory.h"

namespace trellis::sim::core {
namespace {

constexpr std::uint64_t most_instructions = 20'000'000;  // executed instructions, loops included

// A bit for each byte.
class Bitmap {
 public:
  void set(std::int64_t first, std::int64_t end) {
    grow(end);
    each_word(first, end, [&](std::size_t w, std::uint64_t mask) {
      words_[w] |= mask;
      return true;
    });
  }
  // The first byte whose bit is not set, or end.
  std::int64_t first_clear(std::int64_t first, std::int64_t end) {
    grow(end);
    std::int64_t found = end;
    each_word(first, end, [&](std::size_t w, std::uint64_t mask) {
      const std::uint64_t clear = mask & ~words_[w];
      if (clear == 0) return true;
      found = static_cast<std::int64_t>(w) * 64 + __builtin_ctzll(clear);
      return false;
    });
    return found;
  }

 private:
  void grow(std::int64_t end) {
    const auto words = static_cast<std::size_t>((end + 63) / 64);
    if (words_.size() < words) words_.resize(words);
  }
  template <class Visit>
  static void each_word(std::int64_t first, std::int64_t end, Visit visit) {
    while (first < end) {
      const std::int64_t in_word = first % 64, count = std::min(end - first, 64 - in_word);
      const std::uint64_t ones = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
      if (!visit(static_cast<std::size_t>(first / 64), ones << in_word)) return;
      first += count;
    }
  }

  std::vector<std::uint64_t> words_;
};

// Which bytes are written. On chip by address, so that buffers that share memory share the bits; in HBM by buffer.
class Written {
 public:
  explicit Written(const NeuronCoreProgram& program) : program_(program), hbm_(program.buffers.size()) {
    std::int32_t partitions = 1;
    for (const CoreBuffer& b : program.buffers) {
      if (b.space != MemorySpace::hbm) partitions = std::max(partitions, b.partition + b.partitions);
      if (b.space == MemorySpace::hbm && b.role == BufferRole::input) hbm_[at(b)].set(0, b.bytes);
    }
    partitions_ = static_cast<std::size_t>(partitions);
    on_chip_.resize(partitions_ * program.cores * 2);
  }

  // Calls visit(bitmap, first byte, end, row) for every run of bytes of the view, until it returns false.
  template <class Visit>
  void each(const View& v, Visit visit) {
    const CoreBuffer& b = program_.buffers[static_cast<std::size_t>(v.buffer)];
    const auto size = static_cast<std::int64_t>(kernels::size_of(v.type));
    bool on = true;
    for (std::int32_t r = 0; r < v.rows && on; ++r) {
      const bool hbm = b.space == MemorySpace::hbm;
      Bitmap& map = hbm ? hbm_[at(b)] : partition(b, v.row + r);
      const std::int64_t row = v.offset + (hbm ? r * v.row_stride : 0);
      each_run(v, [&](std::int64_t element, std::int64_t count) {
        const std::int64_t first = row + element * size, end = first + count * size;
        if (!on || first < 0 || end > b.bytes) return;  // out of bounds: found by another check
        const std::int64_t base = hbm ? 0 : b.offset;
        on = visit(map, base + first, base + end, v.row + r);
      });
    }
  }

 private:
  std::size_t at(const CoreBuffer& b) const { return static_cast<std::size_t>(&b - program_.buffers.data()); }
  Bitmap& partition(const CoreBuffer& b, std::int32_t row) {
    const std::size_t space = b.space == MemorySpace::psum ? 1 : 0;
    return on_chip_[(b.core * 2U + space) * partitions_ + static_cast<std::size_t>(b.partition + row)];
  }

  const NeuronCoreProgram& program_;
  std::vector<Bitmap> hbm_, on_chip_;
  std::size_t partitions_ = 1;
};

// Executes a program without timing: the engines take turns, and each goes as far as its semaphores allow.
class Follower {
 public:
  explicit Follower(const NeuronCoreProgram& program)
      : program_(program),
        written_(program),
        streams_(static_cast<std::size_t>(program.cores * engine_count)),
        semaphores_(program.semaphores.size()) {
    for (std::uint32_t at = 0; at < program.instructions.size(); ++at) {
      const Instruction& i = program.instructions[at];
      streams_[stream_of(i)].order.push_back(at);
    }
  }

  std::vector<std::string> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Stream& s : streams_)
        while (s.next < s.order.size() && ready(s) && steps_ < most_instructions) {
          step(s);
          moved = true;
        }
    }
    if (steps_ == most_instructions) found_.push_back(fmt::format("followed no further than {} instructions", steps_));
    return std::move(found_);
  }

 private:
  struct Loop {
    std::size_t first;
    std::int64_t left, step;
    std::size_t target;
  };
  struct Stream {
    std::vector<std::uint32_t> order;
    std::size_t next = 0;
    std::vector<std::int64_t> registers = std::vector<std::int64_t>(register_count);
    std::vector<bool> loaded = std::vector<bool>(register_count);  // it was loaded from memory: not known
    std::vector<Loop> loops = {};
  };

  bool ready(const Stream& s) const {
    return std::ranges::all_of(program_.waits_of(program_.instructions[s.order[s.next]]), [&](const SemaphoreWait& w) {
      const auto value = static_cast<double>(semaphores_[static_cast<std::size_t>(w.semaphore)]);
      return value >= w.level(s.registers.data());
    });
  }

  void step(Stream& s) {
    const std::uint32_t at = s.order[s.next++];
    const Instruction& i = program_.instructions[at];
    const BoundInstruction call(program_, i);
    ++steps_;
    reads(s, at, call);
    if (i.kind->control != ControlFlow::none) control(s, call);
    for (const View& v : call.outputs) writes(s, at, call, v);
    for (const SemaphoreSignal& signal : program_.signals_of(i))
      semaphores_[static_cast<std::size_t>(signal.semaphore)] += signal.add;
  }

  void control(Stream& s, const BoundInstruction& call) {
    const auto target = static_cast<std::size_t>(call.number(Key::target));
    const auto value = static_cast<std::int64_t>(call.number(Key::value));
    switch (call.instruction.kind->control) {
      case ControlFlow::loop:
        s.registers[target] = static_cast<std::int64_t>(call.number(Key::start));
        s.loaded[target] = false;
        s.loops.push_back({s.next, static_cast<std::int64_t>(call.number(Key::count)) - 1,
                           static_cast<std::int64_t>(call.number(Key::step, 1)), target});
        return;
      case ControlFlow::end_loop: {
        Loop& loop = s.loops.back();
        if (loop.left-- == 0) return s.loops.pop_back();
        s.registers[loop.target] += loop.step;
        s.next = loop.first;
        return;
      }
      case ControlFlow::add:
        s.registers[target] += value;
        return;
      default:
        s.registers[target] = value;
        s.loaded[target] = call.instruction.kind->control == ControlFlow::load && !call.inputs.empty();
    }
  }

  // Operands that are read at places that depend on data (indirect ones, and those indexed by a register loaded from
  // memory) are not checked: only a part of each is read, and which is not known.
  void reads(const Stream& s, std::uint32_t at, const BoundInstruction& call) {
    const InstructionKind& kind = *call.instruction.kind;
    for (std::size_t n = kind.indirect == IndirectOperand::source ? 1 : 0; n < call.inputs.size(); ++n)
      read(s, at, call.in(n));
    const bool adds = kind.adds && kind.indirect != IndirectOperand::target;
    if (adds || call.number(Key::accumulate) != 0) read(s, at, call.out());
  }

  void read(const Stream& s, std::uint32_t at, const View& v) {
    if (is_anywhere(s, v)) return;
    const std::optional<View> moved = moved_of(s, at, v);
    if (!moved) return;
    written_.each(*moved, [&](Bitmap& map, std::int64_t first, std::int64_t end, std::int32_t row) {
      const std::int64_t clear = map.first_clear(first, end);
      if (clear == end) return true;
      if (first_told(at, v)) tell(at, v, row, clear);
      return false;
    });
  }

  bool first_told(std::uint32_t at, const View& v) { return told_.insert({at, &v - program_.views.data()}).second; }

  bool is_anywhere(const Stream& s, const View& v) const {
    return v.index >= 0 && s.loaded[static_cast<std::size_t>(v.index)];
  }

  // Moves the view as its register says. If that leads out of the buffer, returns none and reports it.
  std::optional<View> moved_of(const Stream& s, std::uint32_t at, const View& v) {
    if (v.index < 0) return v;
    const std::int64_t value = s.registers[static_cast<std::size_t>(v.index)];
    std::optional<View> moved = moved_by(program_, v, value);
    if (!moved && first_told(at, v))
      found_.push_back(fmt::format("{}: {}", place_of(program_, at), leads_out(program_, v, value)));
    return moved;
  }

  void tell(std::uint32_t at, const View& v, std::int32_t row, std::int64_t byte) {
    const CoreBuffer& b = program_.buffers[static_cast<std::size_t>(v.buffer)];
    const bool hbm = b.space == MemorySpace::hbm;
    found_.push_back(fmt::format("{} reads byte {} of {}{}, which nothing has written", place_of(program_, at),
                                 byte - (hbm ? 0 : b.offset), b.name,
                                 hbm ? "" : fmt::format(" in its partition {}", row)));
  }

  // Marks what the view writes: all bytes of its rows if a register loaded from memory moves it, or if it is the
  // indirect output of an instruction that is not a DMA.
  void writes(const Stream& s, std::uint32_t at, const BoundInstruction& call, const View& v) {
    const InstructionKind& kind = *call.instruction.kind;
    if (is_anywhere(s, v) || (kind.indirect == IndirectOperand::target && !kind.dma))
      return mark(whole_rows(program_, v));
    if (const std::optional<View> moved = moved_of(s, at, v)) mark(*moved);
  }

  void mark(const View& v) {
    written_.each(v, [](Bitmap& map, std::int64_t first, std::int64_t end, std::int32_t) {
      map.set(first, end);
      return true;
    });
  }

  const NeuronCoreProgram& program_;
  Written written_;
  std::vector<Stream> streams_;
  std::vector<std::int64_t> semaphores_;
  std::vector<std::string> found_;
  std::set<std::pair<std::uint32_t, std::ptrdiff_t>> told_;
  std::uint64_t steps_ = 0;
};

}  // namespace

std::vector<std::string> unwritten_reads(const NeuronCoreProgram& program) { return Follower(program).run(); }

}  // namespace trellis::sim::core
