// A page for people: text, tables and charts in one HTML file that needs nothing else.
//
// A page is a value. Whoever has results (run_page.h, other verbs) fills in blocks, render() makes
// bytes of them. Blocks know nothing of simulations: names, numbers and units are the caller's.
//
// Of all blocks: text is UTF-8 and stands on the page as it is, whatever it has of `<`, quotes or
// line ends; bytes that are not UTF-8 become U+FFFD. A heading may be empty. A `note` stands below
// the heading in small letters: what is shown, and what was left out. Rows, parts, tracks and spans
// keep their order.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/time.h"

namespace hemiola::report::page {

struct Text {
  std::string heading;
  std::vector<std::string> paragraphs;
};

/// Cells are text as it is to be read. The reader may sort by a column: by number where it is
/// numeric (cells that do not begin with a number come last), else by text.
struct Table {
  struct Column {
    std::string name;  ///< with its unit: "time (us)"
    bool numeric = false;
  };
  std::string heading;
  std::string note{};
  std::vector<Column> columns{};
  std::vector<std::vector<std::string>> rows{};  ///< as many cells as columns; missing are empty
};
/// Columns of text, then numeric ones, then of text again.
std::vector<Table::Column> columns_of(const std::vector<std::string>& texts,
                                      const std::vector<std::string>& numbers,
                                      const std::vector<std::string>& last = {});

/// Horizontal bars, one for each row from the top. Values are finite and not negative.
struct Bars {
  struct Part {
    std::string
        name;  ///< equal names have one colour on the whole page, and one entry in the legend
    double value = 0;
  };
  struct Row {
    std::string label;          ///< several rows may have the same
    double value = 0;           ///< of a row without parts
    std::vector<Part> parts{};  ///< stacked from the left; no name twice
  };
  struct Reference {
    double value = 0;   ///< on the axis of the bars, or of shares
    std::string label;  ///< "serial", "ideal"
  };
  std::string heading;
  std::string note{};
  std::string unit;     ///< of the values, on the axis: "us"
  bool shares = false;  ///< every row with parts is drawn in per cent of its sum, tooltips say both
  std::vector<Row> rows{};
  std::optional<Reference> reference{};  ///< a vertical line
};

/// Lines through points, for instance a rate by size.
struct Curves {
  struct Axis {
    std::string name;          ///< with its unit: "busbw (GB/s)"
    bool logarithmic = false;  ///< then all values are above 0
    bool bytes = false;        ///< values are bytes and read "64 KiB"; steps are powers of two
  };
  struct Series {
    std::string name;                               ///< no other series has it
    std::vector<std::pair<double, double>> points;  ///< by x, upwards
  };
  std::string heading;
  std::string note{};
  Axis x, y;
  std::vector<Series> series;
};

/// A matrix in colours, from 0 to its largest value; the first row is at the top. An empty cell
/// stays empty: it is not a zero.
struct HeatMap {
  std::string heading;
  std::string note{};
  std::string row_title, column_title;                       ///< "from", "to"
  std::string unit;                                          ///< of the values
  std::vector<std::string> rows{}, columns{};                ///< each name once
  std::vector<std::vector<std::optional<double>>> values{};  ///< by row, by column; may be ragged
};

/// What happened when: panels below each other on one axis of time, which the reader can move and
/// stretch with the mouse; tooltips give times exactly. Some 5,000 spans move smoothly.
struct Timelines {
  struct Span {
    std::string name;
    Time begin{}, end{};   ///< begin <= end
    std::string kind;      ///< decides the colour, as the names of parts of bars do
    double weight = 1;     ///< how strongly it is painted, from 0 to 1: of a link, how busy it was
    std::string detail{};  ///< a further line of the tooltip: "412 GB/s"
  };
  struct Track {
    std::string name;         ///< "rank 0: copy engine 3"
    std::vector<Span> spans;  ///< those that overlap are drawn below each other
  };
  struct Panel {
    std::string name;  ///< "winner"
    std::vector<Track> tracks;
  };
  std::string heading;
  std::string note{};
  std::vector<Panel> panels{};
};

/// Boxes in rows and lines between them. Whoever fills it in says where boxes stand: x in boxes
/// from the left, y in rows from the top, of their centres.
struct Graph {
  struct Node {
    std::string label;
    std::string kind;    ///< decides the colour, and has an entry in the legend
    std::string detail;  ///< of the tooltip
    double x = 0, y = 0;
  };
  struct Edge {
    std::size_t from = 0, to = 0;  ///< indices of nodes
    std::string kind;              ///< as of nodes, in a legend of its own
    double weight = 1;             ///< above 0: the heavier, the thicker
    std::string detail;
  };
  /// A frame around nodes that belong together.
  struct Area {
    std::string label;
    double left = 0, top = 0, right = 0, bottom = 0;
  };
  std::string heading;
  std::string note{};
  double columns = 1, rows = 1;  ///< how many boxes are beside and below each other, at most
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<Area> areas{};
};

using Block = std::variant<Text, Table, Bars, Curves, HeatMap, Timelines, Graph>;

struct Page {
  std::string title;
  std::string subtitle{};  ///< the command line that makes the page
  std::vector<std::pair<std::string, std::string>>
      facts{};  ///< name and value: "machine", "dgx-h100"
  std::vector<Block> blocks{};
};

/// False where the project was built without HEMIOLA_REPORT: then there is no code that draws.
bool can_render();
/// Failure (bad input at --report, with a hint) where can_render() is false: for verbs, which say
/// so before their work.
void require_rendering();

/// One HTML file. Equal pages are equal bytes. Nothing is fetched when it is opened. Failure as
/// require_rendering().
std::string render(const Page& page);

/// What the page is made of, as JSON for the code in web/; render() embeds it. For tests and tools.
/// Times are nanoseconds with six decimals, exact.
std::string to_json(const Page& page);

}  // namespace hemiola::report::page
