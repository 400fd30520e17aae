#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "sim/core/program/assembler.h"
#include "sim/core/program/assembly_tokenizer.h"
#include "sim/core/program/instruction_kind.h"
#include "text/refuse.h"

namespace trellis::sim::core {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 44, most_count = INT32_MAX;

class Parser {
 public:
  NeuronCoreProgram parse(std::string_view text) {
    std::size_t number = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, std::min(end, text.substr(0, end).find('#')));
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
      AssemblyTokenizer words(line, ++number);
      if (!words.empty()) parse_line(words);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (program_.name.empty()) throw std::invalid_argument("no line 'program NAME cores=N'");
    return std::move(program_);
  }

 private:
  void parse_line(AssemblyTokenizer& w) {
    const std::string_view word = w.name();
    if (program_.name.empty() != (word == "program")) w.fail("one line 'program NAME cores=N' before all others,");
    if (word == "program")
      parse_program(w);
    else if (word == "hbm")
      parse_hbm(w);
    else if (word == "sbuf" || word == "psum")
      parse_on_chip(w, word == "sbuf" ? MemorySpace::sbuf : MemorySpace::psum);
    else if (word == "semaphore")
      parse_semaphore(w);
    else
      parse_instruction(w, word);
    if (!w.empty()) w.fail("the end of the line");
  }

  void parse_program(AssemblyTokenizer& w) {
    program_.name = w.name();
    w.expect("cores=");
    program_.cores = w.integer<std::uint8_t>(1, 8);
  }

  template <class Map>
  void expect_new(AssemblyTokenizer& w, Map& names, std::string_view name) {
    if (!names.emplace(name, names.size()).second) w.fail(fmt::format("a name that is not taken, as '{}' is,", name));
  }

  DType parse_type(AssemblyTokenizer& w) {
    try {
      return kernels::dtype_named(w.name());
    } catch (const std::invalid_argument& e) {
      text::refuse("line {}: {}", w.number(), e.what());
    }
  }

  void parse_hbm(AssemblyTokenizer& w) {
    CoreBuffer b{.name = std::string(w.name()), .space = MemorySpace::hbm};
    expect_new(w, buffers_, b.name);
    b.type = parse_type(w);
    w.expect("bytes=");
    b.bytes = w.integer<std::int64_t>(1, most_bytes);
    if (w.take("input"))
      b.role = BufferRole::input;
    else if (w.take("output"))
      b.role = BufferRole::output;
    program_.buffers.push_back(std::move(b));
  }

  void parse_on_chip(AssemblyTokenizer& w, MemorySpace space) {
    CoreBuffer b{.name = std::string(w.name()), .space = space};
    expect_new(w, buffers_, b.name);
    b.type = parse_type(w);
    w.expect("core=");
    b.core = w.integer<std::uint8_t>(0, program_.cores - 1);
    w.expect("partitions=");
    b.partition = w.integer<std::int32_t>(0, 1023);
    w.expect("+");
    b.partitions = w.integer<std::int32_t>(1, 1024);
    w.expect("bytes=");
    b.offset = w.integer<std::int64_t>(0, most_count);
    w.expect("+");
    b.bytes = w.integer<std::int64_t>(1, most_count);
    program_.buffers.push_back(std::move(b));
  }

  void parse_semaphore(AssemblyTokenizer& w) {
    const std::string_view name = w.name();
    expect_new(w, semaphores_, name);
    program_.semaphores.emplace_back(name);
  }

  void parse_instruction(AssemblyTokenizer& w, std::string_view kind) {
    Instruction i;
    i.line = static_cast<std::uint32_t>(w.number());
    try {
      i.kind = &kind_named(kind);
    } catch (const std::invalid_argument& e) {
      text::refuse("line {}: {}", w.number(), e.what());
    }
    parse_engine(w, i);
    if (w.take("ring=")) i.queue = w.integer<std::int16_t>(0, 255);
    i.views.first = static_cast<std::uint32_t>(program_.views.size());
    parse_views(w, i);
    i.attributes.first = static_cast<std::uint32_t>(program_.attributes.size());
    while (w.next_is_name() && !w.next_is("wait ") && !w.next_is("signal ")) parse_attribute(w);
    i.attributes.count = static_cast<std::uint32_t>(program_.attributes.size()) - i.attributes.first;
    i.waits.first = static_cast<std::uint32_t>(program_.waits.size());
    while (w.take("wait ")) parse_wait(w);
    i.waits.count = static_cast<std::uint32_t>(program_.waits.size()) - i.waits.first;
    i.signals.first = static_cast<std::uint32_t>(program_.signals.size());
    while (w.take("signal ")) parse_signal(w);
    i.signals.count = static_cast<std::uint32_t>(program_.signals.size()) - i.signals.first;
    program_.instructions.push_back(i);
  }

  void parse_engine(AssemblyTokenizer& w, Instruction& i) {
    const std::string_view word = w.name();
    const std::size_t dot = word.find('.');
    const std::string_view engine = word.substr(0, dot);
    int e = 0;
    while (e < engine_count && name(static_cast<Engine>(e)) != engine) ++e;
    if (e == engine_count)
      text::refuse("line {}: no engine '{}'; expected tensor, vector, scalar, gpsimd or sync", w.number(), engine);
    i.engine = static_cast<Engine>(e);
    if (dot == word.npos) return;
    AssemblyTokenizer core(word.substr(dot + 1), w.number());
    i.core = core.integer<std::uint8_t>(0, program_.cores - 1);
    if (!core.empty()) core.fail("a core's number");
  }

  // An operand begins with NAME[, an attribute with NAME=.
  bool next_is_view(const AssemblyTokenizer& w) const {
    AssemblyTokenizer ahead = w;
    if (!ahead.next_is_name()) return false;
    ahead.name();
    return ahead.next_is("[");
  }

  void parse_views(AssemblyTokenizer& w, Instruction& i) {
    if (next_is_view(w)) {
      do {
        program_.views.push_back(parse_view(w));
        ++i.outputs;
      } while (w.take(","));
    }
    i.views.count = i.outputs;
    if (!w.take("<-")) return;
    do {
      program_.views.push_back(parse_view(w));
      ++i.views.count;
    } while (w.take(","));
  }

  View parse_view(AssemblyTokenizer& w) {
    const std::string_view name = w.name();
    const auto found = buffers_.find(name);
    if (found == buffers_.end()) text::refuse("line {}: no buffer '{}'", w.number(), name);
    const CoreBuffer& b = program_.buffers[found->second];
    View v{.buffer = static_cast<std::int32_t>(found->second), .type = b.type, .dims = 0};
    w.expect("[");
    v.row = w.integer<std::int32_t>(0, most_count);
    w.expect("+");
    v.rows = w.integer<std::int32_t>(1, most_count);
    w.expect("@");
    v.offset = w.integer<std::int64_t>(0, most_bytes);
    while (!w.next_is("/") && !w.next_is("r") && !w.next_is("]")) {
      if (v.dims == most_dims) w.fail("']' after four dimensions");
      Dim& dim = v.dim[v.dims++];
      dim.count = w.integer<std::int32_t>(1, most_count);
      w.expect("x");
      dim.stride = w.integer<std::int32_t>(-most_count, most_count);
    }
    if (v.dims == 0) w.fail("COUNTxSTRIDE");
    if (w.take("/")) v.row_stride = w.integer<std::int64_t>(0, most_bytes);
    if (w.take("r")) {
      v.index = w.integer<std::int16_t>(0, INT16_MAX);
      w.expect("*");
      v.index_scale = w.integer<std::int64_t>(-most_bytes, most_bytes);
    }
    w.expect("]");
    if (w.take(":")) v.type = parse_type(w);
    return v;
  }

  void parse_attribute(AssemblyTokenizer& w) {
    const std::string_view word = w.name();
    int k = 0;
    while (k < key_count && name(static_cast<Key>(k)) != word) ++k;
    if (k == key_count) text::refuse("line {}: no attribute '{}'", w.number(), word);
    w.expect("=");
    const Key key = static_cast<Key>(k);
    const auto words = words_of(key);
    if (words.empty()) return program_.attributes.push_back({key, w.real()});
    const std::string_view value = w.name();
    const auto found = std::ranges::find(words, value);
    if (found == words.end())
      text::refuse("line {}: {}={}; expected one of {}", w.number(), word, value, fmt::join(words, ", "));
    program_.attributes.push_back({key, static_cast<double>(found - words.begin())});
  }

  std::int32_t parse_semaphore_name(AssemblyTokenizer& w) {
    const std::string_view name = w.name();
    const auto found = semaphores_.find(name);
    if (found == semaphores_.end()) text::refuse("line {}: no semaphore '{}'", w.number(), name);
    return static_cast<std::int32_t>(found->second);
  }

  void parse_wait(AssemblyTokenizer& w) {
    SemaphoreWait wait{.semaphore = parse_semaphore_name(w)};
    w.expect(">=");
    wait.value = w.integer<std::int32_t>(-most_count, most_count);
    if (w.take("+r")) {
      wait.index = w.integer<std::int16_t>(0, INT16_MAX);
      w.expect("*");
      wait.index_scale = w.integer<std::int32_t>(-most_count, most_count);
    }
    program_.waits.push_back(wait);
  }

  void parse_signal(AssemblyTokenizer& w) {
    SemaphoreSignal signal{.semaphore = parse_semaphore_name(w)};
    w.expect("+");
    signal.add = w.integer<std::int32_t>(-most_count, most_count);
    program_.signals.push_back(signal);
  }

  NeuronCoreProgram program_;
  std::map<std::string, std::size_t, std::less<>> buffers_, semaphores_;
};

}  // namespace

NeuronCoreProgram parse(std::string_view text) { return Parser().parse(text); }

}  // namespace trellis::sim::core
