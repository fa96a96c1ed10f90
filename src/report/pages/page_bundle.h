// What web/ is bundled to, built into the library by cmake/HemiolaPage.cmake.
#pragma once

#include <string_view>

namespace hemiola::report::page {

/// The code that draws a page, minified. Empty in a build without HEMIOLA_REPORT.
std::string_view bundled_script();
/// Its style sheet.
std::string_view bundled_style();

}  // namespace hemiola::report::page
