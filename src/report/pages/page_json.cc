// A page as JSON: what the code in web/ reads.
#include <array>
#include <string>
#include <variant>

#include "report/page.h"
#include "report/values/json_text.h"
#include "report/values/numbers.h"

namespace hemiola::report::page {
namespace {

template <typename... Members>
JsonText object(const Members&... members) {
  return JsonObject::compact().add(members...).json();
}
template <typename Items, typename Element = JsonOf>
JsonText list(const Items& items, const Element& element = {}) {
  return json_array(items, element, ",");
}
JsonText ns(Time time) {
  return {exact_ns(time)};
}

/// Of all blocks but texts.
JsonObject head_of(const char* type, const auto& block) {
  return JsonObject::compact().add("type", type, "heading", block.heading, "note", block.note);
}

JsonText object_of(const Text& block) {
  return object("type", "text", "heading", block.heading, "paragraphs", list(block.paragraphs));
}

JsonText object_of(const Table& block) {
  const auto column = [](const Table::Column& one) {
    return object("name", one.name, "numeric", one.numeric);
  };
  const auto row = [](const std::vector<std::string>& cells) { return list(cells); };
  return head_of("table", block)
      .add("columns", list(block.columns, column), "rows", list(block.rows, row))
      .json();
}

JsonText object_of(const Bars& block) {
  const auto part = [](const Bars::Part& one) {
    return JsonText{"[" + json_of(one.name) + "," + json_of(one.value) + "]"};
  };
  const auto row = [&](const Bars::Row& one) {
    return object("label", one.label, "value", one.value, "parts", list(one.parts, part));
  };
  const auto& reference = block.reference;
  return head_of("bars", block)
      .add("unit", block.unit, "shares", block.shares, "rows", list(block.rows, row), "reference",
           reference ? object("value", reference->value, "label", reference->label)
                     : JsonText{"null"})
      .json();
}

JsonText object_of(const Curves& block) {
  const auto axis = [](const Curves::Axis& one) {
    return object("name", one.name, "logarithmic", one.logarithmic, "bytes", one.bytes);
  };
  const auto point = [](const std::pair<double, double>& one) {
    return list(std::array{one.first, one.second});
  };
  const auto series = [&](const Curves::Series& one) {
    return object("name", one.name, "points", list(one.points, point));
  };
  return head_of("curves", block)
      .add("x", axis(block.x), "y", axis(block.y), "series", list(block.series, series))
      .json();
}

JsonText object_of(const HeatMap& block) {
  const auto row = [](const std::vector<std::optional<double>>& cells) { return list(cells); };
  return head_of("heat_map", block)
      .add("row_title", block.row_title, "column_title", block.column_title, "unit", block.unit,
           "rows", list(block.rows), "columns", list(block.columns), "values",
           list(block.values, row))
      .json();
}

JsonText object_of(const Timelines& block) {
  const auto span = [](const Timelines::Span& one) {
    return object("name", one.name, "begin", ns(one.begin), "end", ns(one.end), "kind", one.kind,
                  "weight", one.weight, "detail", one.detail);
  };
  const auto track = [&](const Timelines::Track& one) {
    return object("name", one.name, "spans", list(one.spans, span));
  };
  const auto panel = [&](const Timelines::Panel& one) {
    return object("name", one.name, "tracks", list(one.tracks, track));
  };
  return head_of("timelines", block).add("panels", list(block.panels, panel)).json();
}

JsonText object_of(const Graph& block) {
  const auto node = [](const Graph::Node& one) {
    return object("label", one.label, "kind", one.kind, "detail", one.detail, "x", one.x, "y",
                  one.y);
  };
  const auto edge = [](const Graph::Edge& one) {
    return object("from", one.from, "to", one.to, "kind", one.kind, "weight", one.weight, "detail",
                  one.detail);
  };
  const auto area = [](const Graph::Area& one) {
    return object("label", one.label, "left", one.left, "top", one.top, "right", one.right,
                  "bottom", one.bottom);
  };
  return head_of("graph", block)
      .add("columns", block.columns, "rows", block.rows, "nodes", list(block.nodes, node), "edges",
           list(block.edges, edge), "areas", list(block.areas, area))
      .json();
}

}  // namespace

std::string to_json(const Page& page) {
  const auto fact = [](const std::pair<std::string, std::string>& one) {
    return list(std::array{one.first, one.second});
  };
  const auto block = [](const Block& one) {
    return std::visit([](const auto& kind) { return object_of(kind); }, one);
  };
  return object("title", page.title, "subtitle", page.subtitle, "facts", list(page.facts, fact),
                "blocks", list(page.blocks, block))
      .text;
}

}  // namespace hemiola::report::page
