// Code from outside the library that has registered models, rules or schedules. A proof of a step depends on it.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace trellis::train {

// Remembers the file whose code registers something. caller: an address in that code. False: it is the library's own.
bool note_foreign_code(const void* caller);

// A checksum of the files whose code has registered something; empty: none has.
std::string foreign_code();

// A shared library must not throw while it is loaded, so a failed registration's fault is kept for check_foreign_code.
void keep_foreign_fault(std::string fault);
void check_foreign_code();  // throws invalid_argument with the first fault

template <class Registry, class Entry>
void register_from(const void* caller, Registry& registry, Entry entry) {
  const bool foreign = note_foreign_code(caller);
  try {
    registry.add(std::move(entry));
  } catch (const std::logic_error& e) {
    if (!foreign) throw;
    keep_foreign_fault(e.what());
  }
}

}  // namespace trellis::train
