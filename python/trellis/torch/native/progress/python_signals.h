// Ctrl-C in calls that wait without the GIL. Python runs handlers of signals in its main thread alone, when asked to.
#pragma once

#include <chrono>

namespace trellis::process_group {

constexpr std::chrono::milliseconds between_looks_for_signals{100};

bool takes_signals();  // whether Python runs handlers in this thread
// Runs the handlers of signals that have arrived. True: one has raised an exception, which is kept for this thread.
bool interrupted();
void raise_kept();  // throws what is kept
void raise_if_interrupted();

}  // namespace trellis::process_group
