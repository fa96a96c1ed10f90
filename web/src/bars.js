// Horizontal bars, plain and stacked.
import { short } from './numbers.js';
import { colourOf, colourScale, topLegend, variable, widest } from './theme.js';

const rowHeight = 28;

function flatten(block) {
  const values = [];
  block.rows.forEach((row, number) => {
    const parts = row.parts.length ? row.parts : [['', row.value]];
    const sum = parts.reduce((total, part) => total + part[1], 0);
    let before = 0;
    parts.forEach(([name, value]) => {
      const scale = block.shares && row.parts.length ? (sum > 0 ? 100 / sum : 0) : 1;
      values.push({
        row: number, label: row.label, name, from: before * scale, to: (before + value) * scale,
        value: `${short(value)} ${block.unit}`, share: sum > 0 ? `${(100 * value / sum).toFixed(1)} %` : '-', sum: `${short(sum)} ${block.unit}`,
      });
      before += value;
    });
  });
  return values;
}

/** The spec of Vega-Lite; `width` is the room for the whole chart. */
export function bars(block, width) {
  const values = flatten(block);
  const stacked = block.rows.some(row => row.parts.length > 0);
  const names = [...new Set(values.map(value => value.name))];
  const labels = block.rows.map(row => row.label);
  const left = widest(labels, 320) + 14;
  const sums = block.rows.map((row, number) => {
    const all = values.filter(value => value.row === number);
    return { row: number, to: Math.max(0, ...all.map(value => value.to)), text: all.length ? all[0].sum : '' };
  });
  const right = widest(sums.map(sum => sum.text), 160) + 12;
  const y = {
    field: 'row', type: 'ordinal', sort: null, scale: { domain: labels.map((_, number) => number), paddingInner: 0.28, paddingOuter: 0.2 },
    axis: { title: null, labelExpr: 'labels[datum.value]', ticks: false, domain: false, minExtent: left, maxExtent: left, labelLimit: 320, labelPadding: 6, labelColor: variable('--ink') },
  };
  const axisTitle = block.shares ? 'share (%)' : block.unit;
  const most = Math.max(...sums.map(sum => sum.to), block.reference ? block.reference.value : 0) || 1;
  const x = field => ({
    field, type: 'quantitative', title: axisTitle, scale: { domain: [0, most], nice: false },
    axis: { grid: true, tickCount: 8, domain: false, ticks: false },
  });
  const tooltip = [{ field: 'label', title: ' ' }];
  if (stacked) tooltip.push({ field: 'name', title: 'part' });
  tooltip.push({ field: 'value', title: 'value' });
  if (stacked) tooltip.push({ field: 'share', title: 'share' }, { field: 'sum', title: 'of' });
  const layer = [
    {
      mark: { type: 'bar', cornerRadius: stacked ? 0 : 2, ...(stacked ? { stroke: variable('--paper'), strokeWidth: 0.7 } : { color: colourOf('') }) },
      encoding: {
        y, x: x('from'), x2: { field: 'to' }, tooltip,
        ...(stacked ? { color: { field: 'name', type: 'nominal', title: null, scale: colourScale(names), legend: topLegend(names, width - left - right) } } : {}),
      },
    },
    {
      data: { values: sums },
      mark: { type: 'text', align: 'left', dx: 6, color: variable('--quiet') },
      encoding: { y, x: { field: 'to', type: 'quantitative' }, text: { field: 'text' } },
    },
  ];
  if (block.reference) {
    const at = { data: { values: [{ at: block.reference.value, text: block.reference.label }] } };
    const encoding = { x: { field: 'at', type: 'quantitative' } };
    layer.push({ ...at, mark: { type: 'rule', strokeDash: [5, 4], strokeWidth: 1.5, color: variable('--ink') }, encoding });
    layer.push({ ...at, mark: { type: 'text', align: 'center', baseline: 'bottom', dy: -4, y: 0 }, encoding: { ...encoding, text: { field: 'text' } } });
  }
  return {
    width: Math.max(200, width - left - right - 8), height: { step: rowHeight }, params: [{ name: 'labels', value: labels }],
    data: { values }, layer,
  };
}

/** Names that need a colour. */
export const barNames = block => block.rows.flatMap(row => row.parts.map(part => part[0]));
