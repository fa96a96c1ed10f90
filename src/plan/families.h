// The functions that templates.cc registers. Private to the layer.
#pragma once

#include "plan/template.h"

namespace hemiola::plan {

// ring.cc
Plan make_all_reduce_ring(const TemplateArguments& arguments);
Plan make_reduce_scatter_ring(const TemplateArguments& arguments);
Plan make_all_gather_ring(const TemplateArguments& arguments);
Plan make_broadcast_ring(const TemplateArguments& arguments);

// direct.cc
Plan make_all_gather_direct(const TemplateArguments& arguments);
Plan make_reduce_scatter_direct(const TemplateArguments& arguments);
Plan make_all_to_all_direct(const TemplateArguments& arguments);

// shots.cc
Plan make_all_reduce_one_shot(const TemplateArguments& arguments);
Plan make_all_reduce_two_shot(const TemplateArguments& arguments);

}  // namespace hemiola::plan
