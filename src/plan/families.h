// What templates have in common, and the functions that template_list.h names. Private to the
// layer.
#pragma once

#include "plan/template.h"

namespace hemiola::plan {

/// The parameter "transfer": who moves the data.
inline ParameterInfo transfer_parameter(const char* default_value) {
  return {"transfer",
          default_value,
          {"push", "pull"},
          "who moves the data: push stores to peers, pull loads from them"};
}

#define HEMIOLA_TEMPLATE(name) TemplateInfo name();
#include "plan/template_list.h"
#undef HEMIOLA_TEMPLATE

}  // namespace hemiola::plan
