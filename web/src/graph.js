// Boxes in rows, and lines between them.
import { colourScale, textWidth, topLegend, variable } from './theme.js';

const rowHeight = 92, boxHeight = 30, mostBox = 108;

const kindsOf = list => [...new Set(list.map(one => one.kind))];
export const graphNames = block => [...kindsOf(block.nodes), ...kindsOf(block.edges)];

/** Where a line goes: straight, but around the boxes that stand between others of one row or column. */
function wayOf(from, to) {
  const across = Math.abs(to.x - from.x), down = Math.abs(to.y - from.y);
  if (down === 0 && across > 1.01) {
    const deep = from.y + 0.3 + Math.min(0.28, 0.02 * across);
    return [[from.x, from.y], [from.x, deep], [to.x, deep], [to.x, to.y]];
  }
  if (across === 0 && down > 1.01) {
    const aside = from.x + 0.5;
    return [[from.x, from.y], [aside, from.y], [aside, to.y], [to.x, to.y]];
  }
  return [[from.x, from.y], [to.x, to.y]];
}

/** Shorter text where it does not fit into so many pixels. */
function fitting(text, room) {
  if (textWidth(text, 11) <= room) return text;
  let length = text.length;
  while (length > 1 && textWidth(`${text.slice(0, length)}\u2026`, 11) > room) --length;
  return length > 2 ? `${text.slice(0, length)}\u2026` : '';
}

/** The spec of Vega-Lite; `width` is the room for the whole chart. */
export function graph(block, width) {
  const pixels = Math.min(width - 10, block.columns * 150);
  const column = pixels / block.columns;
  const half = Math.min(mostBox, 0.84 * column) / 2 / column, high = boxHeight / 2 / rowHeight;
  const nodes = block.nodes.map(node => ({
    ...node, left: node.x - half, right: node.x + half, top: node.y - high, bottom: node.y + high, text: fitting(node.label, 2 * half * column - 6),
  }));
  const weights = block.edges.map(edge => edge.weight);
  const least = Math.min(...weights), most = Math.max(...weights);
  const thick = weight => (most > least ? 1 + 4 * Math.log(weight / least) / Math.log(most / least) : 2);
  const lines = block.edges.flatMap((edge, number) => wayOf(block.nodes[edge.from], block.nodes[edge.to]).map(([x, y], order) => ({
    x, y, order, number, class: edge.kind, thick: thick(edge.weight), between: `${block.nodes[edge.from].label} \u2013 ${block.nodes[edge.to].label}`, detail: edge.detail,
  })));
  const x = { field: 'x', type: 'quantitative', axis: null, scale: { domain: [0, block.columns], nice: false, zero: false } };
  const y = { field: 'y', type: 'quantitative', axis: null, scale: { domain: [block.rows, 0], nice: false, zero: false } };
  const rect = { x: { ...x, field: 'left' }, x2: { field: 'right' }, y: { ...y, field: 'top' }, y2: { field: 'bottom' } };
  const nodeKinds = kindsOf(block.nodes), edgeKinds = kindsOf(block.edges);
  return {
    width: pixels, height: block.rows * rowHeight,
    layer: [
      {
        data: { values: block.areas }, encoding: rect,
        layer: [
          { mark: { type: 'rect', fill: variable('--faint'), stroke: variable('--line'), cornerRadius: 8 } },
          { mark: { type: 'text', align: 'left', baseline: 'bottom', dx: 9, dy: -5, color: variable('--quiet') }, encoding: { x: rect.x, y: { ...y, field: 'bottom' }, x2: null, y2: null, text: { field: 'label' } } },
        ],
      },
      {
        data: { values: lines }, mark: { type: 'line', interpolate: 'basis', opacity: 0.75, strokeCap: 'round' },
        encoding: {
          x, y, detail: { field: 'number' }, order: { field: 'order' },
          stroke: { field: 'class', title: 'links', scale: colourScale(edgeKinds), legend: { ...topLegend(edgeKinds, width), symbolType: 'stroke', symbolStrokeWidth: 3 } },
          strokeWidth: { field: 'thick', type: 'quantitative', scale: null, legend: null },
          tooltip: [{ field: 'between', title: 'between' }, { field: 'detail', title: 'links' }],
        },
      },
      { data: { values: nodes }, mark: { type: 'rect', fill: variable('--paper'), cornerRadius: 5 }, encoding: rect },
      {
        data: { values: nodes }, mark: { type: 'rect', cornerRadius: 5, fillOpacity: 0.34, strokeWidth: 1, stroke: variable('--quiet') },
        encoding: {
          ...rect, fill: { field: 'kind', title: 'nodes', scale: colourScale(nodeKinds), legend: topLegend(nodeKinds, width) },
          tooltip: [{ field: 'label', title: 'node' }, { field: 'detail', title: ' ' }],
        },
      },
      { data: { values: nodes }, mark: { type: 'text', fontSize: 11, color: variable('--ink'), tooltip: null }, encoding: { x, y, text: { field: 'text' } } },
    ],
  };
}
