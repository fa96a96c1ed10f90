// The page: what is in the model is in the bytes, and nothing in it can break out of its place.
#include "report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/diagnostics.h"

namespace hemiola::report::page {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kNasty = "a</script><b>\"'& \\ <!-- \u2192\u2028\n]]>";

Page every_block() {
  Page page;
  page.title = kNasty;
  page.subtitle = "hemiola run 'a b'";
  page.facts = {{"machine", "dgx-h100"}, {"time", "1 us"}};
  page.blocks = {
      Text{"heading", {"first", kNasty}},
      Table{"table", "note", {{"name"}, {"time, us", true}}, {{kNasty, "1.5"}, {"b", "2"}}},
      Bars{.heading = "bars",
           .unit = "us",
           .shares = true,
           .rows = {{"row", 0, {{"link", 1.25}, {kNasty, 2}}}, {"plain", 3.5, {}}},
           .reference = Bars::Reference{2, "ideal"}},
      Curves{
          "curves", "", {"size", true, true}, {"busbw (GB/s)"}, {{"ring", {{1024, 1}, {4096, 2}}}}},
      HeatMap{
          "map", "", "from", "to", "%", {"a", "b"}, {"c", "d"}, {{1.0, std::nullopt}, {0.5, 2}}},
      Timelines{
          "when", "", {{"winner", {{"rank 0", {{kNasty, {1}, {2'000'003}, "kernel", 0.5, "x"}}}}}}},
      Graph{.heading = "graph",
            .columns = 2,
            .rows = 1,
            .nodes = {{kNasty, "xpu", "a GPU", 0.5, 0.5}, {"b", "nic", "", 1.5, 0.5}},
            .edges = {{1, 0, "wire", 3, "three links"}},
            .areas = {{"host.0", 0, 0.25, 2, 1}}},
  };
  return page;
}

/// The JSON of a rendered page, as a browser finds it.
std::string embedded_json(const std::string& html) {
  const std::string begin = "<script type=\"application/json\" id=\"model\">";
  const std::size_t from = html.find(begin) + begin.size();
  return html.substr(from, html.find("</script", from) - from);
}

TEST(Page, json_has_all_that_the_model_has) {
  const json page = json::parse(to_json(every_block()));
  EXPECT_EQ(page["title"], kNasty);
  EXPECT_EQ(page["subtitle"], "hemiola run 'a b'");
  EXPECT_EQ(page["facts"], json::parse(R"([["machine", "dgx-h100"], ["time", "1 us"]])"));
  const json& blocks = page["blocks"];
  ASSERT_EQ(blocks.size(), 7U);
  EXPECT_EQ(blocks[0]["paragraphs"], (json{"first", kNasty}));
  EXPECT_EQ(blocks[1]["columns"][0], json::parse(R"({"name": "name", "numeric": false})"));
  EXPECT_EQ(blocks[1]["columns"][1], json::parse(R"({"name": "time, us", "numeric": true})"));
  EXPECT_EQ(blocks[1]["rows"][0], (json{kNasty, "1.5"}));
  EXPECT_EQ(blocks[1]["note"], "note");
  EXPECT_EQ(blocks[2]["unit"], "us");
  EXPECT_EQ(blocks[2]["shares"], true);
  EXPECT_EQ(blocks[2]["rows"][0]["parts"][0], json::parse(R"(["link", 1.25])"));
  EXPECT_EQ(blocks[2]["rows"][0]["parts"][1][0], kNasty);
  EXPECT_EQ(blocks[2]["rows"][1], json::parse(R"({"label": "plain", "value": 3.5, "parts": []})"));
  EXPECT_EQ(blocks[2]["reference"], json::parse(R"({"value": 2, "label": "ideal"})"));
  EXPECT_EQ(blocks[3]["x"], json::parse(R"({"name": "size", "logarithmic": true, "bytes": true})"));
  EXPECT_EQ(blocks[3]["series"][0]["points"], json::parse("[[1024, 1], [4096, 2]]"));
  EXPECT_EQ(blocks[4]["rows"], (json{"a", "b"}));
  EXPECT_EQ(blocks[4]["columns"], (json{"c", "d"}));
  EXPECT_EQ(blocks[4]["values"], json::parse("[[1, null], [0.5, 2]]"));
  const json& panel = blocks[5]["panels"][0];
  EXPECT_EQ(panel["name"], "winner");
  EXPECT_EQ(panel["tracks"][0]["name"], "rank 0");
  const json& span = panel["tracks"][0]["spans"][0];
  EXPECT_EQ(span["name"], kNasty);
  EXPECT_EQ(span["kind"], "kernel");
  EXPECT_EQ(span["weight"], 0.5);
  EXPECT_EQ(span["detail"], "x");
  EXPECT_EQ(blocks[6]["nodes"][0]["label"], kNasty);
  EXPECT_EQ(blocks[6]["nodes"][1], json::parse(R"({"label": "b", "kind": "nic", "detail": "",
                                                   "x": 1.5, "y": 0.5})"));
  EXPECT_EQ(blocks[6]["edges"][0], json::parse(R"({"from": 1, "to": 0, "kind": "wire", "weight": 3,
                                                   "detail": "three links"})"));
  EXPECT_EQ(blocks[6]["areas"][0]["top"], 0.25);
}

TEST(Page, times_are_exact_nanoseconds) {
  EXPECT_THAT(to_json(every_block()), HasSubstr("\"begin\":0.000001,\"end\":2.000003"));
}

TEST(Page, bytes_that_are_no_text_are_replaced) {
  EXPECT_EQ(json::parse(to_json({.title = "a\xff"}))["title"], "a\uFFFD");
}

TEST(Page, numbers_that_json_has_not_are_empty) {
  const Page page{.title = "", .blocks = {HeatMap{"", "", "", "", "", {"a"}, {"b"}, {{1 / 0.0}}}}};
  EXPECT_EQ(json::parse(to_json(page))["blocks"][0]["values"], json::parse("[[null]]"));
}

TEST(Page, is_html_that_holds_the_same_json) {
  if (!can_render()) GTEST_SKIP() << "built without HEMIOLA_REPORT";
  const std::string html = render(every_block());
  EXPECT_THAT(html, StartsWith("<!DOCTYPE html>\n"));
  EXPECT_EQ(json::parse(embedded_json(html)), json::parse(to_json(every_block())));
}

TEST(Page, text_cannot_break_out_of_its_place) {
  if (!can_render()) GTEST_SKIP() << "built without HEMIOLA_REPORT";
  const std::string html = render(every_block());
  const std::string data = embedded_json(html);
  EXPECT_THAT(data, Not(HasSubstr("<")));
  EXPECT_THAT(html, HasSubstr("<title>a&lt;/script&gt;&lt;b&gt;\"'&amp; \\ &lt;!-- "));
  // The texts of the page do not change how often an element begins.
  const auto count = [](const std::string& text, const std::string& word) {
    int found = 0;
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  const std::string plain = render({.title = "plain"});
  for (const char* word : {"<script", "</script", "<title", "<!--"})
    EXPECT_EQ(count(html, word), count(plain, word)) << word;
}

TEST(Page, equal_pages_are_equal_bytes) {
  if (!can_render()) GTEST_SKIP() << "built without HEMIOLA_REPORT";
  EXPECT_EQ(render(every_block()), render(every_block()));
}

TEST(Page, is_refused_with_a_hint_where_nothing_draws) {
  if (can_render()) GTEST_SKIP() << "built with HEMIOLA_REPORT";
  try {
    render(every_block());
    FAIL() << "rendered";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    EXPECT_THAT(failure.diagnostics().items().front().hint, HasSubstr("npm"));
  }
}

}  // namespace
}  // namespace hemiola::report::page
