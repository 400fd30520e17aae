// A pipeline schedule as a picture, and as one page with the picture, its figures and the layout of ranks.
#pragma once

#include <string>
#include <string_view>

#include "train/mesh/mesh.h"
#include "train/pipeline/schedule.h"
#include "train/pipeline/simulate.h"

namespace trellis::tools {

std::string pipeline_picture(const train::PipelineSchedule&, const train::PipelineTiming&);  // SVG

// Self-contained HTML.
std::string pipeline_page(const train::PipelineSchedule&, const train::PipelineTiming&, const train::Mesh&);

// The files of tools/train/web, which the build embeds.
extern const std::string_view pipeline_style, pipeline_controls, pipeline_script;

}  // namespace trellis::tools
