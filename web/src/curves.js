// Lines through points.
import { bytes, short } from './numbers.js';
import { colourScale, widest } from './theme.js';

const text = (axis, value) => axis.bytes ? bytes(value) : short(value);

/** Powers of two within the values, at most about ten. */
function byteSteps(values) {
  const low = Math.floor(Math.log2(Math.min(...values))), high = Math.ceil(Math.log2(Math.max(...values)));
  const step = Math.max(1, Math.ceil((high - low) / 12));
  const steps = [];
  for (let power = low; power <= high; power += step) steps.push(2 ** power);
  return steps;
}

function channel(axis, field, values, chart) {
  const ticks = axis.bytes ? { values: byteSteps(values.filter(value => value > 0)) } : { tickCount: 7 };
  const label = axis.bytes
    ? "datum.value >= 1099511627776 ? datum.value / 1099511627776 + ' TiB' : datum.value >= 1073741824 ? datum.value / 1073741824 + ' GiB' : datum.value >= 1048576 ? datum.value / 1048576 + ' MiB' : datum.value >= 1024 ? datum.value / 1024 + ' KiB' : datum.value + ' B'"
    : undefined;
  const scale = axis.logarithmic ? { type: 'log', base: axis.bytes ? 2 : 10, nice: !axis.bytes } : { zero: field === 'y' };
  return {
    field, type: 'quantitative', title: axis.name, scale,
    axis: { ...ticks, grid: true, domain: false, ticks: false, labelPadding: 6, ...(label ? { labelExpr: label } : {}), ...chart },
  };
}

export function curves(block, width) {
  const values = block.series.flatMap(series => series.points.map(([x, y]) => (
    { x, y, series: series.name, xText: text(block.x, x), yText: text(block.y, y) })));
  const names = block.series.map(series => series.name);
  const legend = names.length > 1 ? widest(names, 240) + 48 : 0;
  return {
    width: Math.max(300, width - 80 - legend), height: 300,
    data: { values },
    mark: { type: 'line', point: { size: 36, filled: true }, strokeWidth: 2 },
    encoding: {
      x: channel(block.x, 'x', values.map(value => value.x), {}),
      y: channel(block.y, 'y', values.map(value => value.y), {}),
      color: { field: 'series', type: 'nominal', title: null, scale: colourScale(names), legend: legend ? { symbolType: 'stroke', symbolStrokeWidth: 3 } : null },
      tooltip: [{ field: 'series', title: ' ' }, { field: 'xText', title: block.x.name }, { field: 'yText', title: block.y.name }],
    },
  };
}

export const curveNames = block => block.series.map(series => series.name);
