#include "sim/cluster/machine/import/import.h"

#include "sim/cluster/machine/import/import_parsing.h"

namespace trellis::sim {

MachineSpec import_machine(std::string_view name, std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '<') {
    pugi::xml_document document;
    const pugi::xml_parse_result result = document.load_buffer(text.data(), text.size());
    if (!result) refuse_import(name, "byte {}: {}", result.offset, result.description());
    const std::string_view root = document.document_element().name();
    if (root == "platform") return import_simgrid(name, text);
    if (root == "system") return import_nccl(name, text);
    if (root == "topology") return import_hwloc(name, text);
    refuse_import(name, "<{}>: expected <platform> (SimGrid), <system> (NCCL) or <topology> (hwloc)", root);
  }
  for (std::string_view line : import_list(text, '\n'))
    if (line.starts_with("npus_count")) return import_astra(name, text);
  MachineSpec spec = read_machine(name, text);
  if (spec.levels.empty())
    refuse_import(name, "no fabric: expected a line `level KIND NAME DIMS`, as in `level torus wire 4x4`");
  return spec;
}

}  // namespace trellis::sim
