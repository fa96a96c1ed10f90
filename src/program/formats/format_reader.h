// Readers: one for each program format.
//
// hemiola/parts/program_format.h is the contract of the role. A built-in format is one file that
// defines a function `FormatReader NAME_reader()` and one line in reader_list.h.
#pragma once

#include "hemiola/parts/program_format.h"
#include "program/program.h"

namespace hemiola::program {

#define HEMIOLA_READER(name) FormatReader name##_reader();
#include "program/formats/reader_list.h"
#undef HEMIOLA_READER

}  // namespace hemiola::program
