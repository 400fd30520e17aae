#include "tools/program/command.h"

namespace trellis::tools {
namespace {

// The group of the commands about a simulated machine as a whole.
const RegisteredCommand registered(Command{
    .path = "machine",
    .summary = "Choose and look for algorithms on simulated machines",
    .examples = "trellis machine tune trn2.48xlarge --collectives all_reduce --chart crossover.svg\n"
                "trellis machine search \"trn1.32xlarge x 4\" all_reduce --bytes 64MB"});

}  // namespace
}  // namespace trellis::tools
