// trellis nki: execs `python -m trellis.nki`, which runs NKI kernels.
#include "tools/program/command.h"
#include "tools/python_commands/python_command.h"

namespace trellis::tools {
namespace {

// For --help only: all words are passed on as they are typed.
struct Options {
  std::string chip, rules;
  bool shadow = false, no_compute = false;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "NKI kernels without hardware: files that import nki, or neuronxcc.nki, run unmodified.\n\n"
      "  trellis nki SCRIPT.py [ARGS]     runs a script, as Python would\n"
      "  trellis nki run FILE.py:KERNEL   runs one kernel on random arrays, and says what it did\n"
      "  trellis nki profile              its timeline by source line, what it waited for, what would be faster\n"
      "  trellis nki compare              which of two kernels is faster, and why\n"
      "  trellis nki check                for CI: fails when a kernel is slower than a file says\n"
      "  trellis nki answer | serve       for programs that write kernels: JSON, or a server of MCP\n\n"
      "Each has --help. The Python package does that: the interpreter is TRELLIS_PYTHON, or the first python3 or "
      "python\n"
      "of PATH that has the packages trellis, numpy and ml_dtypes.");
  app.add_option("--chip", o.chip, "trn1, inf2, trn2 or trn3; else what the kernel says, else trn2");
  app.add_option("--rules", o.rules,
                 "strict refuses what the documentation forbids; device warns of it and goes on [strict]");
  app.add_flag("--shadow", o.shadow, "Use Trellis's nki even where a real nki or neuronxcc is installed");
  app.add_flag("--no-compute", o.no_compute, "Only the trace: no arithmetic, results are zeros");
  app.pass_words_on();
}

int run(const Options&) { return run_python_command("nki", "nki", {"numpy", "ml_dtypes"}); }

const RegisteredCommand nki("nki", "NKI kernels without hardware: computed, timed, compared",
                            "trellis nki examples/nki/rmsnorm.py\n"
                            "trellis nki run kernels.py:matmul --arg a=4096x4096:bf16 --arg b=4096x4096:bf16\n"
                            "trellis nki compare slow.py:matmul fast.py:matmul --arg a=512x512:bf16\n"
                            "trellis nki --help",
                            add, run);

}  // namespace
}  // namespace trellis::tools
