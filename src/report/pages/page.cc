// A page as HTML: the frame, the bundle and the data. The bundle makes the rest in the browser.
#include "report/page.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "core/diagnostics.h"
#include "report/pages/page_bundle.h"

namespace hemiola::report::page {
namespace {

/// Text between tags.
std::string html_text(std::string_view text) {
  std::string escaped;
  for (const char c : text)
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else
      escaped += c;
  return escaped;
}

/// JSON inside a script element: an HTML parser looks for "</script" and "<!--" there, whatever
/// JSON says. Outside of its strings JSON has no such character, so an escape is right everywhere.
std::string script_text(std::string_view json) {
  std::string escaped;
  escaped.reserve(json.size());
  for (const char c : json)
    if (c == '<')
      escaped += "\\u003c";
    else
      escaped += c;
  return escaped;
}

}  // namespace

std::vector<Table::Column> columns_of(const std::vector<std::string>& texts,
                                      const std::vector<std::string>& numbers,
                                      const std::vector<std::string>& last) {
  std::vector<Table::Column> all;
  for (const std::string& name : texts) all.push_back({name});
  for (const std::string& name : numbers) all.push_back({name, true});
  for (const std::string& name : last) all.push_back({name});
  return all;
}

bool can_render() {
  return !bundled_script().empty();
}

void require_rendering() {
  if (can_render()) return;
  throw Failure("this build makes no pages: it was configured without HEMIOLA_REPORT",
                SourceLocation{.file = "--report"},
                "configure with -DHEMIOLA_REPORT=ON, which needs npm; --json has the numbers");
}

std::string render(const Page& page) {
  require_rendering();
  std::string html;
  html += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  html += "<meta name=\"generator\" content=\"hemiola\">\n";
  // No icon is asked for: nothing is fetched.
  html += "<link rel=\"icon\" href=\"data:,\">\n";
  html += fmt::format("<title>{}</title>\n", html_text(page.title));
  html += fmt::format("<style>{}</style>\n</head>\n<body>\n", bundled_style());
  html +=
      "<noscript>This page draws its charts with JavaScript, which is switched off.</noscript>\n";
  html += fmt::format("<script type=\"application/json\" id=\"model\">{}</script>\n",
                      script_text(to_json(page)));
  html += fmt::format("<script>{}</script>\n</body>\n</html>\n", bundled_script());
  return html;
}

}  // namespace hemiola::report::page
