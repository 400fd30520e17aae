// trellis neff: containers of programs, looked into and made.
#include "device/neff/neff.h"

#include <fmt/format.h>

#include "sim/core/check/check.h"
#include "sim/core/program/assembler.h"
#include "tools/core/core_program_options.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"

namespace trellis::tools {
namespace {

const RegisteredCommand group({.path = "neff",
                               .summary = "Containers of NeuronCore programs",
                               .examples = "trellis neff make reduce -p n=65536 -o reduce.neff\n"
                                           "trellis neff show reduce.neff"});

struct ShowOptions {
  std::string file;
};

void add_show(CLI::App& app, ShowOptions& o) {
  app.description("Shows a container's header and files. A NEFF that a compiler made can be looked into too.");
  app.add_option("file", o.file, "A NEFF")->required();
}

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string out;
  for (const std::uint8_t b : bytes) out += fmt::format("{:02x}", b);
  return out;
}

int show(const ShowOptions& o) {
  const std::string bytes = read_input(o.file);
  const device::Neff neff = device::read_neff(std::as_bytes(std::span(bytes)));
  const device::NeffHeader& h = neff.header;
  std::string out = fmt::format("name      {}\nversion   {}.{}, package {}\nbuild     {}\n", h.name, h.major, h.minor,
                                h.package_version, h.build);
  out += fmt::format("cores     {} wanted, of {} physical cores each\nfeatures  {:#x}\n", h.cores_wanted,
                     h.logical_size, h.features);
  out += fmt::format("uuid      {}\nhash      {}\ndata      {} bytes{}\n", hex(h.uuid), hex(h.hash), h.data_bytes,
                     neff.is_compressed ? ", compressed: its files are not listed" : "");
  for (const device::NeffEntry& f : neff.files) out += fmt::format("{:>10}  {}\n", f.bytes.size(), f.name);
  if (neff.is_ours()) {
    const sim::core::NeuronCoreProgram p = sim::core::parse(device::program_of(neff));
    out += fmt::format("program   {}, {} instructions, {} buffers\n", p.name, p.instructions.size(), p.buffers.size());
    for (const sim::core::CoreBuffer& b : p.buffers)
      if (b.role != sim::core::BufferRole::internal)
        out += fmt::format("{:9} {}: {} bytes of {}\n", name(b.role), b.name, b.bytes, kernels::name(b.type));
  } else {
    out += "program   none that can run here: a NeuronCore's instructions have no public encoding\n";
  }
  write_output("", out);
  return 0;
}

struct MakeOptions {
  CoreProgramOptions subject;
  std::string output;
};

void add_make(CLI::App& app, MakeOptions& o) {
  app.description("Puts a program that ships, or one from a file, into a container that devices can load.");
  add_core_subject(app, o.subject);
  app.add_option("-o,--output", o.output, "Write here")->required()->check(output_file());
}

int make(const MakeOptions& o) {
  const sim::ChipSpec chip = chip_of(o.subject);
  const sim::core::NeuronCoreProgram program = program_of(o.subject, chip);
  sim::core::check(program, chip);
  const auto bytes = device::write_neff(program.name, sim::core::print(program), program.cores);
  write_output(o.output, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return 0;
}

const RegisteredCommand show_command("neff show", "Shows what a container holds", "trellis neff show reduce.neff",
                                     add_show, show);
const RegisteredCommand make_command("neff make", "Puts a program into a container",
                                     "trellis neff make reduce -p n=65536 -o reduce.neff", add_make, make);

}  // namespace
}  // namespace trellis::tools
