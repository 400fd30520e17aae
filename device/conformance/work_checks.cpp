// Kernels, programs and the topology.
#include <algorithm>

#include "device/backends.h"
#include "device/capabilities.h"
#include "device/conformance/device_buffer.h"
#include "device/conformance/sample_program.h"
#include "device/neff/neff.h"
#include "device/neff/tar.h"
#include "device/program.h"
#include "device/topology.h"

namespace trellis::device {

std::vector<std::byte> sample_container() { return write_neff("sum_of_two", sample_program, 1); }

std::vector<std::byte> foreign_container() {
  std::vector<std::byte> out = write_neff("compiled", "", 1);
  std::vector<std::byte> archive;
  append_tar(archive, "sg00/def.json", "{}");
  append_tar(archive, "sg00/pe.bin", "instructions");
  end_tar(archive);
  const std::uint64_t bytes = archive.size();
  out.resize(neff_header_bytes);
  std::memcpy(out.data() + 16, &bytes, sizeof bytes);
  out.insert(out.end(), archive.begin(), archive.end());
  return out;
}

namespace {

void arithmetic(Device& d) {
  DeviceBuffer a(d, 4000), b(d, 4000);
  std::vector<float> numbers(1000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  a.put(numbers);
  d.copy(b.data(), a.data(), 4000, kernels::Stores::streaming);
  const void* const sources[] = {a.data(), b.data()};
  d.reduce(kernels::Reduction::sum, kernels::DType::f32, sources, b.data(), 1000, {});
  expect(b.get<float>()[999] == 1998.0F, "999 + 999 is {}", b.get<float>()[999]);
  d.divide(kernels::DType::f32, b.data(), 1000, 2);
  expect(b.get<float>() == numbers, "x + x, divided by 2, is not x");
}

// Runs a kernel on the device and on the host, over the same bytes.
void compare_kernel(Device& d, const kernels::Kernel& kernel, std::size_t n) {
  KernelLaunch here{.kernel = kernel.name, .n = n, .key = {}}, there = here;
  std::vector<std::vector<unsigned char>> host;
  std::vector<std::unique_ptr<DeviceBuffer>> device;
  const auto add = [&](kernels::DType type) {
    host.push_back(numbered(n * size_of(type), static_cast<int>(host.size())));
    if (type != kernels::DType::bf16 && is_float(type))  // numbers of middling size
      for (std::size_t i = size_of(type) - 1; i < host.back().size(); i += size_of(type)) host.back()[i] = 0x3F;
    device.push_back(std::make_unique<DeviceBuffer>(d, host.back().size()));
    device.back()->put(host.back());
  };
  for (const kernels::DType t : kernel.writes) add(t);
  for (const kernels::DType t : kernel.reads) add(t);
  if (kernel.many && kernel.reads.size() < 2) add(kernel.reads.back());
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (i < kernel.writes.size())
      here.writes.push_back(device[i]->data()), there.writes.push_back(host[i].data());
    else
      here.reads.push_back(device[i]->data()), there.reads.push_back(host[i].data());
  }
  d.launch(here);
  run_launch(there);
  for (std::size_t i = 0; i < kernel.writes.size(); ++i)
    expect(device[i]->get<unsigned char>() == host[i], "{} leaves other bits than on the host", kernel.name);
}

void every_kernel(Device& d) {
  int run = 0;
  for (const auto& [name, kernel] : kernels::kernels()) {
    if (kernel.sums || kernel.writes.empty() || kernel.reads.empty()) continue;
    compare_kernel(d, kernel, 100);
    ++run;
  }
  expect(run > 20, "only {} kernels were tried", run);
}

void launches(Device& d) {
  DeviceBuffer y(d, 400), x(d, 400);
  x.put(std::vector<float>(100, 2.0F));
  const KernelLaunch twice{
      .kernel = "reduce.sum.f32.nearest", .n = 100, .writes = {y.data()}, .reads = {x.data(), x.data()}};
  const auto stream = d.stream();
  d.launch(*stream, twice);
  stream->synchronize();
  expect(y.get<float>()[99] == 4.0F, "2 + 2 is {}", y.get<float>()[99]);
  KernelLaunch wrong = twice;
  wrong.writes.clear();
  expect_refused<std::invalid_argument>("a launch without its operand", [&] { d.launch(wrong); });
  wrong = twice;
  wrong.kernel = "reduce.sum.f31.nearest";
  const std::string why = expect_refused<std::invalid_argument>("an unknown kernel", [&] { d.launch(*stream, wrong); });
  expect(why.find("f31") != std::string::npos, "'{}' does not name the kernel", why);
}

void programs(Device& d) {
  const auto program = d.load(sample_container());
  expect(program->operands().size() == 3, "{} operands; expected 3", program->operands().size());
  constexpr std::size_t bytes = sample_numbers * sizeof(float);
  DeviceBuffer a(d, bytes), b(d, bytes), out(d, bytes);
  a.put(std::vector<float>(sample_numbers, 1.5F));
  b.put(std::vector<float>(sample_numbers, 2.0F));
  std::vector<Binding> bound = {{"a", a.data(), bytes}, {"b", b.data(), bytes}, {"out", out.data(), bytes}};
  program->run(bound);
  expect(out.get<float>()[sample_numbers - 1] == 3.5F, "1.5 + 2 is {}", out.get<float>()[sample_numbers - 1]);
  const auto stream = d.stream();
  bound[1].data = out.data();
  program->run(bound, stream.get());
  stream->synchronize();
  expect(out.get<float>()[0] == 5.0F, "1.5 + 3.5 is {}", out.get<float>()[0]);
  if (d.capabilities().has(Capability::simulated_time))
    expect(program->time() > 0, "the program took {} ps", program->time());
  const auto refuse = [&](std::string_view what, auto change) {
    std::vector<Binding> wrong = bound;
    change(wrong);
    expect_refused<std::invalid_argument>(what, [&] { program->run(wrong); });
  };
  refuse("a missing operand", [](auto& w) { w.pop_back(); });
  refuse("an unknown operand", [](auto& w) { w.push_back({"c", w[0].data, w[0].bytes}); });
  refuse("too few bytes", [](auto& w) { w[0].bytes = 16; });
  expect_refused<std::exception>("no container", [&] { d.load({}); });
  const std::string why = expect_refused<std::exception>("a compiler's NEFF", [&] { d.load(foreign_container()); });
  expect(why.find("not public") != std::string::npos, "'{}' does not say why a NEFF cannot run", why);
}

void topology(Device& d) {
  const Topology& t = d.topology();
  expect(t.chips >= 1 && t.cores >= t.chips && t.cores % t.chips == 0, "{} cores of {} chips", t.cores, t.chips);
  expect(t.core >= 0 && t.core < t.cores, "core {} of {}", t.core, t.cores);
  expect(t.visible >= 1 && t.visible <= t.cores, "{} of {} cores are visible", t.visible, t.cores);
  expect(!t.machine.empty() && !t.chip.empty(), "the machine has no name");
  for (const Link& l : t.links)
    expect(l.from >= 0 && l.from < t.chips && l.to >= 0 && l.to < t.chips && l.from != l.to, "a link from {} to {}",
           l.from, l.to);
  for (const Capability c : every_capability())
    expect(d.capabilities().has(c) == d.why_not(c).empty(), "{}: '{}'", name(c), d.why_not(c));
}

const RegisteredCheck all[] = {
    RegisteredCheck({"arithmetic", "sums and quotients are those of kernels/", {}, arithmetic}),
    RegisteredCheck({"every kernel", "each kernel leaves the bits that it leaves on the host", {}, every_kernel}),
    RegisteredCheck({"launches", "a kernel runs by name, and wrong operands are refused", {}, launches}),
    RegisteredCheck(
        {"programs", "a program computes, and wrong bindings are refused", {Capability::programs}, programs}),
    RegisteredCheck({"topology", "the machine is described", {}, topology}),
};

}  // namespace
}  // namespace trellis::device
