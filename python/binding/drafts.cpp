// Kernels that Python passes as flat arrays: a back end makes a program of one, which is run to find its simulated
// time.
#include <algorithm>
#include <map>

#include "python/binding/signals.h"
#include "sim/core/backend/backend.h"
#include "sim/core/program/instruction_kind.h"
#include "sim/core/run/run.h"
#include "sim/hardware/figures/embedded_files.h"
#include "sim/hardware/figures/model_error_range.h"
#include "sim/hardware/report/html_report.h"
#include "sim/hardware/timeline/perfetto.h"
#include "sim/hardware/timeline/summary.h"

namespace trellis::binding {
namespace {

using namespace nb::literals;
using namespace sim::core;

using Table = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::device::cpu, nb::c_contig>;
template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::device::cpu, nb::c_contig>;

// A row of a table, read from left to right.
class RowReader {
 public:
  RowReader(const Table& t, std::size_t row) : at_(t.data() + row * t.shape(1)) {}
  template <class T>
  RowReader& operator>>(T& to) {
    to = static_cast<T>(*at_++);
    return *this;
  }
  std::int64_t next() { return *at_++; }

 private:
  const std::int64_t* at_;
};

constexpr std::size_t buffer_columns = 10, view_columns = 7 + 2 * most_dims, instruction_columns = 11;

void expect_columns(const Table& t, std::size_t columns, const char* what) {
  if (t.shape(1) != columns)
    throw std::invalid_argument(std::string(what) + ": " + std::to_string(t.shape(1)) + " columns, expected " +
                                std::to_string(columns));
}

void read_buffers(UnscheduledProgram& d, const Table& t, std::vector<std::string>& names) {
  expect_columns(t, buffer_columns, "buffers");
  for (std::size_t r = 0; r < t.shape(0); ++r) {
    RowReader row(t, r);
    CoreBuffer b;
    b.name = std::move(names[r]);
    row >> b.space >> b.type >> b.role >> b.core >> b.partition >> b.partitions >> b.offset >> b.bytes;
    d.program.cores = std::max<std::uint8_t>(d.program.cores, b.core + 1);
    d.program.buffers.push_back(std::move(b));
    d.sites.push_back(static_cast<std::int32_t>(row.next()));
    d.placed.push_back(row.next() != 0);
  }
}

std::vector<View> read_views(const UnscheduledProgram& d, const Table& t) {
  expect_columns(t, view_columns, "views");
  std::vector<View> views;
  for (std::size_t r = 0; r < t.shape(0); ++r) {
    RowReader row(t, r);
    View v;
    row >> v.buffer >> v.type >> v.row >> v.rows >> v.offset >> v.row_stride >> v.dims;
    for (Dim& dim : v.dim) row >> dim.count >> dim.stride;
    if (v.buffer < 0 || static_cast<std::size_t>(v.buffer) >= d.program.buffers.size() || v.dims < 1 ||
        v.dims > most_dims)
      throw std::invalid_argument("view " + std::to_string(r) + ": buffer " + std::to_string(v.buffer) + " of " +
                                  std::to_string(d.program.buffers.size()) + ", " + std::to_string(v.dims) +
                                  " dimensions");
    views.push_back(v);
  }
  return views;
}

struct References {
  const Column<std::int32_t>& views;
  const Column<std::int32_t>& keys;
  const Column<double>& values;
};

void read_instructions(UnscheduledProgram& d, const Table& t, const std::vector<std::string>& kind_names,
                       const std::vector<View>& views, const References& references) {
  expect_columns(t, instruction_columns, "instructions");
  std::vector<const InstructionKind*> kinds;
  for (const std::string& name : kind_names) kinds.push_back(&kind_named(name));
  std::size_t view = 0, attribute = 0;
  for (std::size_t r = 0; r < t.shape(0); ++r) {
    RowReader row(t, r);
    Instruction i;
    i.kind = kinds.at(static_cast<std::size_t>(row.next()));
    std::int64_t asked = 0, ring = 0, inputs = 0, attributes = 0, ordered = 0, begins = 0;
    EngineSet set = 0;
    row >> asked >> set >> i.core >> ring >> i.line >> i.outputs >> inputs >> attributes >> ordered >> begins;
    i.engine = static_cast<Engine>(asked);
    i.views = {static_cast<std::uint32_t>(d.program.views.size()), i.outputs + static_cast<std::uint32_t>(inputs)};
    for (std::uint32_t v = 0; v < i.views.count; ++v)
      d.program.views.push_back(views.at(static_cast<std::size_t>(references.views.data()[view++])));
    i.attributes = {static_cast<std::uint32_t>(d.program.attributes.size()), static_cast<std::uint32_t>(attributes)};
    for (std::int64_t a = 0; a < attributes; ++a, ++attribute)
      d.program.attributes.push_back(
          {static_cast<Key>(references.keys.data()[attribute]), references.values.data()[attribute]});
    d.program.instructions.push_back(i);
    d.engines.push_back(set | set_of(i.engine));
    d.queues.push_back(static_cast<std::int16_t>(ring));
    d.in_order.push_back(ordered != 0);
    d.regions.push_back((r == 0 ? 0 : d.regions.back()) + (begins != 0 ? 1 : 0));
  }
}

UnscheduledProgram draft_of(const std::string& name, std::vector<std::string> names, const Table& buffers,
                            const Table& views, const std::vector<std::string>& kinds, const Table& instructions,
                            const Column<std::int32_t>& view_numbers, const Column<std::int32_t>& keys,
                            const Column<double>& values,
                            const std::vector<std::pair<std::uint32_t, std::uint32_t>>& follows,
                            const std::vector<std::pair<std::uint32_t, std::uint32_t>>& after,
                            std::vector<std::string> lines) {
  UnscheduledProgram d;
  d.program.name = name;
  if (names.size() != buffers.shape(0)) throw std::invalid_argument("buffers: as many names as rows are expected");
  read_buffers(d, buffers, names);
  read_instructions(d, instructions, kinds, read_views(d, views), {view_numbers, keys, values});
  d.program.lines = std::move(lines);
  for (const auto* pairs : {&follows, &after})
    for (const auto& [later, earlier] : *pairs)
      if (std::max(later, earlier) >= d.program.instructions.size())
        throw std::invalid_argument("instruction " + std::to_string(std::max(later, earlier)) + " of " +
                                    std::to_string(d.program.instructions.size()) + " is to keep an order");
  d.follows = follows;
  d.after = after;
  return d;
}

// end: -1 sets all assumed figures to the end of their range that makes programs faster, 1 slower; 0 leaves them.
sim::ChipSpec chip_at(const std::string& name, const std::vector<std::pair<std::string, std::string>>& changes,
                      int end) {
  const auto others = [](std::string_view other) { return sim::data_text("chips", other); };
  sim::Figures figures = sim::Figures::read(sim::data_text("chips", name), others);
  if (end != 0) {
    const auto all = figures.all();
    for (const auto& [key, f] : all) {
      if (f.mark != sim::FigureProvenance::assumed) continue;
      using enum sim::Dimension;
      const bool more_is_slower = f.dimension == time || f.dimension == cycles || f.dimension == bytes;
      figures.set(key, more_is_slower == (end > 0) ? f.high : f.low);
    }
  }
  for (const auto& [key, value] : changes) figures.set(key, std::string_view(value));
  return sim::ChipSpec(name, std::move(figures));
}

struct Recorder : InstructionObserver {
  struct Ended {};
  Recorder(std::size_t n) : start(n, -1), end(n, -1) {}
  void issued(std::uint32_t at, const std::int64_t*, sim::Time t) override {
    if (start[at] < 0) start[at] = t;
    if (signals.raised()) throw Ended();
  }
  void finished(std::uint32_t at, sim::Time t) override { end[at] = t; }
  std::vector<std::int64_t> start, end;  // of each of the program's instructions
  SignalWatcher signals;
};

struct TimedRun {
  RunTotals totals;
  std::vector<std::int64_t> start, end;  // of the draft's instructions
  sim::Timeline timeline;
  sim::HardwarePeaks peaks;
};

TimedRun timed(const BackEndResult& a, const sim::ChipSpec& chip, bool keep_timeline) {
  TimedRun out;
  out.peaks = peaks_of(chip, a.program.cores);
  Recorder recorder(a.order.size());
  recorder.signals.watch([&] {
    out.totals = run(a.program, chip, {.timeline = keep_timeline ? &out.timeline : nullptr, .observer = &recorder});
  });
  out.start.resize(a.written);
  out.end.resize(a.written);
  for (std::size_t n = 0; n < a.order.size(); ++n) {
    if (a.order[n] >= a.written) continue;
    out.start[a.order[n]] = recorder.start[n];
    out.end[a.order[n]] = recorder.end[n];
  }
  return out;
}

nb::dict totals_of(const TimedRun& r) {
  const RunTotals& t = r.totals;
  nb::dict d = dict_of(t);
  d["dma_any_ps"] = t.dma_any;
  d["dma_busy_ps"] = t.dma_busy;
  d["peak_flops"] = r.peaks.flops_per_second;
  d["hbm_rate"] = r.peaks.roofs[0].bytes_per_second;
  d["dma_rate"] = r.peaks.roofs[1].bytes_per_second;
  nb::list streams;
  for (std::size_t s = 0; s < t.streams.size(); ++s) {
    nb::dict waits;
    for (std::size_t w = 1; w < sim::wait_count; ++w)
      waits[nb::str(name(static_cast<sim::WaitReason>(w)).data())] = t.streams[s].waited[w];
    streams.append(nb::make_tuple(s / engine_count, std::string(name(static_cast<Engine>(s % engine_count))),
                                  t.streams[s].instructions, t.streams[s].busy, waits));
  }
  d["engines"] = streams;
  return d;
}

// The critical path by track, label and reason: (track, label, waits for, picoseconds, pieces), the longest first.
using PathShare = std::tuple<std::string, std::string, std::string, std::int64_t, std::int64_t>;

std::vector<PathShare> path_of(const TimedRun& r) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, sim::WaitReason>, std::pair<std::int64_t, std::int64_t>> shares;
  for (const sim::CriticalPathPiece& piece : sim::critical_path(r.timeline)) {
    if (piece.span < 0) continue;
    const sim::Span& span = r.timeline.spans[static_cast<std::size_t>(piece.span)];
    auto& [time, pieces] = shares[{span.track, span.label, piece.waiting ? span.wait : sim::WaitReason::none}];
    time += piece.end - piece.start;
    ++pieces;
  }
  std::vector<PathShare> all;
  for (const auto& [key, share] : shares) {
    const auto& [track, label, wait] = key;
    all.emplace_back(r.timeline.tracks[track].name, r.timeline.label(label), std::string(name(wait)), share.first,
                     share.second);
  }
  std::ranges::sort(all, [](const auto& a, const auto& b) { return std::get<3>(a) > std::get<3>(b); });
  return all;
}

using MadeBy = std::vector<std::pair<std::string, std::string>>;

void add_timed_runs(nb::module_& m) {
  m.def(
      "widened",
      [](double middle, double low, double high, const std::string& kind) {
        const sim::ValueRange range = sim::widened(middle, {low, high}, sim::error_range(kind));
        return std::pair(range.low, range.high);
      },
      "middle"_a, "low"_a, "high"_a, "kind"_a);
  nb::class_<TimedRun>(m, "CoreTimedRun")
      .def_prop_ro("totals", &totals_of)
      .def_prop_ro(
          "start", [](const TimedRun& r) { return as_array(r.start); }, nb::rv_policy::move)
      .def_prop_ro(
          "end", [](const TimedRun& r) { return as_array(r.end); }, nb::rv_policy::move)
      .def("path", &path_of)
      .def("summary", [](const TimedRun& r) { return summary_json(r.timeline, summarize(r.timeline, r.peaks)); })
      .def(
          "html",
          [](const TimedRun& r, const std::string& title, const std::string& introduction, const MadeBy& made_by) {
            return html_report(r.timeline,
                               {.title = title, .introduction = introduction, .made_by = made_by, .peaks = r.peaks});
          },
          "title"_a, "introduction"_a, "made_by"_a)
      .def(
          "perfetto",
          [](const TimedRun& r, const MadeBy& made_by) {
            const std::string bytes = sim::perfetto(r.timeline, sim::ns, made_by);
            return nb::bytes(bytes.data(), bytes.size());
          },
          "made_by"_a);
}

}  // namespace

void add_drafts(nb::module_& m) {
  add_timed_runs(m);
  nb::class_<sim::ChipSpec>(m, "CoreChip")
      .def(nb::new_(&chip_at), "name"_a, "changes"_a, "end"_a)
      .def_prop_ro("sbuf_bytes", [](const sim::ChipSpec& c) { return c.memory.sbuf_bytes; });
  nb::class_<UnscheduledProgram>(m, "CoreDraft")
      .def(nb::new_(&draft_of), "name"_a, "buffer_names"_a, "buffers"_a, "views"_a, "kinds"_a, "instructions"_a,
           "view_numbers"_a, "keys"_a, "values"_a, "follows"_a, "after"_a, "lines"_a)
      .def(
          "assemble",
          [](const UnscheduledProgram& d, const sim::ChipSpec& chip, std::uint32_t window, bool critical_path,
             int copies, bool fuse, bool regions, bool spill) {
            const nb::gil_scoped_release others_may_run;
            return assemble(d, chip, {window, critical_path, regions, fuse, spill, copies});
          },
          "chip"_a, "window"_a, "critical_path"_a, "copies"_a, "fuse"_a, "regions"_a, "spill"_a);
  nb::class_<BackEndResult>(m, "CoreAssembled")
      .def_prop_ro(
          "order", [](const BackEndResult& a) { return as_array(a.order); }, nb::rv_policy::move)
      .def_prop_ro(
          "engines",
          [](const BackEndResult& a) {
            std::vector<std::int8_t> engines(a.written);
            for (std::size_t n = 0; n < a.order.size(); ++n)
              if (a.order[n] < a.written)
                engines[a.order[n]] = static_cast<std::int8_t>(a.program.instructions[n].engine);
            return as_array(std::move(engines));
          },
          nb::rv_policy::move)
      .def_prop_ro("spilled_bytes", [](const BackEndResult& a) { return a.spills.bytes; })
      .def_prop_ro("most_sbuf", [](const BackEndResult& a) { return a.most[0]; })
      .def_prop_ro("most_psum", [](const BackEndResult& a) { return a.most[1]; })
      .def_prop_ro("program", [](const BackEndResult& a) { return a.program; })
      .def("time", &timed, "chip"_a, "keep_timeline"_a);
  m.def("dtype_names", [] {
    std::vector<std::string> names;
    for (const kernels::DType d : kernels::dtypes()) names.emplace_back(kernels::name(d));
    return names;
  });
  m.def("core_vocabulary", [] {
    nb::dict keys;
    for (int k = 0; k < key_count; ++k) {
      nb::list words;
      for (const std::string_view w : words_of(static_cast<Key>(k))) words.append(std::string(w));
      keys[nb::str(std::string(name(static_cast<Key>(k))).c_str())] = words;
    }
    return keys;
  });
}

}  // namespace trellis::binding
