// A page as JSON: what the code in web/ reads.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <variant>

#include "report/page.h"
#include "report/values/numbers.h"

namespace hemiola::report::page {
namespace {

/// Writes objects and arrays member by member; commas are its business.
class JsonText {
 public:
  void open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  void key(std::string_view name) {
    separate();
    text_ += fmt::format("\"{}\":", name);
    first_ = true;
  }
  void raw(std::string_view value) {
    separate();
    text_ += value;
  }
  void value(std::string_view text) { raw(json_string(text)); }
  void value(double number) { raw(json_number(number)); }
  void value(Time time) { raw(exact_ns(time)); }
  void value(bool flag) { raw(flag ? "true" : "false"); }
  template <typename Value>
  void member(std::string_view name, const Value& content) {
    key(name);
    value(content);
  }
  void member(std::string_view name, const char* content) {
    member(name, std::string_view(content));
  }
  /// An array: `write` is called for each element.
  template <typename Range, typename Write>
  void list(std::string_view name, const Range& range, Write write) {
    key(name);
    open('[');
    for (const auto& element : range) write(element);
    close(']');
  }
  /// An array of objects: `write` adds the members of each.
  template <typename Range, typename Write>
  void objects(std::string_view name, const Range& range, Write write) {
    list(name, range, [&](const auto& element) {
      open('{');
      write(element);
      close('}');
    });
  }
  std::string take() { return std::move(text_); }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  std::string text_;
  bool first_ = true;
};

void write_pair(JsonText& json, const auto& first, const auto& second) {
  json.open('[');
  json.value(first);
  json.value(second);
  json.close(']');
}

void write_names(JsonText& json, std::string_view key, const std::vector<std::string>& names) {
  json.list(key, names, [&](const std::string& name) { json.value(name); });
}

/// Of all blocks but texts.
void write_head(JsonText& json, std::string_view type, const auto& block) {
  json.member("type", type);
  json.member("heading", block.heading);
  json.member("note", block.note);
}

void write(JsonText& json, const Text& block) {
  json.member("type", "text");
  json.member("heading", block.heading);
  write_names(json, "paragraphs", block.paragraphs);
}

void write(JsonText& json, const Table& block) {
  write_head(json, "table", block);
  json.objects("columns", block.columns, [&](const Table::Column& column) {
    json.member("name", column.name);
    json.member("numeric", column.numeric);
  });
  json.list("rows", block.rows, [&](const std::vector<std::string>& row) {
    json.open('[');
    for (const std::string& cell : row) json.value(cell);
    json.close(']');
  });
}

void write(JsonText& json, const Bars& block) {
  write_head(json, "bars", block);
  json.member("unit", block.unit);
  json.member("shares", block.shares);
  json.objects("rows", block.rows, [&](const Bars::Row& row) {
    json.member("label", row.label);
    json.member("value", row.value);
    json.list("parts", row.parts,
              [&](const Bars::Part& part) { write_pair(json, part.name, part.value); });
  });
  json.key("reference");
  if (!block.reference) return json.raw("null");
  json.open('{');
  json.member("value", block.reference->value);
  json.member("label", block.reference->label);
  json.close('}');
}

void write(JsonText& json, const Curves& block) {
  write_head(json, "curves", block);
  for (const auto& [name, axis] : {std::pair("x", &block.x), std::pair("y", &block.y)}) {
    json.key(name);
    json.open('{');
    json.member("name", axis->name);
    json.member("logarithmic", axis->logarithmic);
    json.member("bytes", axis->bytes);
    json.close('}');
  }
  json.objects("series", block.series, [&](const Curves::Series& series) {
    json.member("name", series.name);
    json.list("points", series.points, [&](const std::pair<double, double>& point) {
      write_pair(json, point.first, point.second);
    });
  });
}

void write(JsonText& json, const HeatMap& block) {
  write_head(json, "heat_map", block);
  json.member("row_title", block.row_title);
  json.member("column_title", block.column_title);
  json.member("unit", block.unit);
  write_names(json, "rows", block.rows);
  write_names(json, "columns", block.columns);
  json.list("values", block.values, [&](const std::vector<std::optional<double>>& row) {
    json.open('[');
    for (const std::optional<double>& cell : row) json.value(cell.value_or(std::nan("")));
    json.close(']');
  });
}

void write(JsonText& json, const Timelines& block) {
  write_head(json, "timelines", block);
  json.objects("panels", block.panels, [&](const Timelines::Panel& panel) {
    json.member("name", panel.name);
    json.objects("tracks", panel.tracks, [&](const Timelines::Track& track) {
      json.member("name", track.name);
      json.objects("spans", track.spans, [&](const Timelines::Span& span) {
        json.member("name", span.name);
        json.member("begin", span.begin);
        json.member("end", span.end);
        json.member("kind", span.kind);
        json.member("weight", span.weight);
        json.member("detail", span.detail);
      });
    });
  });
}

void write(JsonText& json, const Graph& block) {
  write_head(json, "graph", block);
  json.member("columns", block.columns);
  json.member("rows", block.rows);
  json.objects("nodes", block.nodes, [&](const Graph::Node& node) {
    json.member("label", node.label);
    json.member("kind", node.kind);
    json.member("detail", node.detail);
    json.member("x", node.x);
    json.member("y", node.y);
  });
  json.objects("edges", block.edges, [&](const Graph::Edge& edge) {
    json.member("from", static_cast<double>(edge.from));
    json.member("to", static_cast<double>(edge.to));
    json.member("kind", edge.kind);
    json.member("weight", edge.weight);
    json.member("detail", edge.detail);
  });
  json.objects("areas", block.areas, [&](const Graph::Area& area) {
    json.member("label", area.label);
    json.member("left", area.left);
    json.member("top", area.top);
    json.member("right", area.right);
    json.member("bottom", area.bottom);
  });
}

}  // namespace

std::string to_json(const Page& page) {
  JsonText json;
  json.open('{');
  json.member("title", page.title);
  json.member("subtitle", page.subtitle);
  json.list("facts", page.facts, [&](const std::pair<std::string, std::string>& fact) {
    write_pair(json, fact.first, fact.second);
  });
  json.objects("blocks", page.blocks, [&](const Block& block) {
    std::visit([&](const auto& kind) { write(json, kind); }, block);
  });
  json.close('}');
  return json.take();
}

}  // namespace hemiola::report::page
