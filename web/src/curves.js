// Lines through points.
import { bytes, short } from './numbers.js';
import { colourScale, topLegend } from './theme.js';

const text = (axis, value) => axis.bytes ? bytes(value) : short(value);

/** Powers of two within the values, at most about ten. */
function byteSteps(values) {
  const low = Math.floor(Math.log2(Math.min(...values))), high = Math.ceil(Math.log2(Math.max(...values)));
  const step = Math.max(1, Math.ceil((high - low) / 12));
  const steps = [];
  for (let power = low; power <= high; power += step) steps.push(2 ** power);
  return steps;
}

/** 1, 2, 5, 10, ... within the values; powers of ten alone where there are many. */
function decimalSteps(values) {
  const low = Math.min(...values), high = Math.max(...values);
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const steps = [];
  for (let power = first; power <= last; ++power) for (const digit of last - first > 4 ? [1] : [1, 2, 5]) steps.push(digit * 10 ** power);
  return steps.filter(step => step >= low / 2.01 && step <= high * 2.01);
}

function channel(axis, field, values) {
  const positive = values.filter(value => value > 0);
  let ticks = { tickCount: 7 };
  if (axis.bytes) ticks = { values: byteSteps(positive) };
  else if (axis.logarithmic) ticks = { values: decimalSteps(positive) };
  const label = axis.bytes
    ? "datum.value >= 1099511627776 ? datum.value / 1099511627776 + ' TiB' : datum.value >= 1073741824 ? datum.value / 1073741824 + ' GiB' : datum.value >= 1048576 ? datum.value / 1048576 + ' MiB' : datum.value >= 1024 ? datum.value / 1024 + ' KiB' : datum.value + ' B'"
    : undefined;
  const scale = axis.logarithmic ? { type: 'log', base: axis.bytes ? 2 : 10, nice: false } : { zero: field === 'y' };
  if (axis.logarithmic && !axis.bytes) scale.domain = [0.85 * Math.min(...positive), 1.15 * Math.max(...positive)];
  return {
    field, type: 'quantitative', title: axis.name, scale,
    axis: { ...ticks, grid: true, domain: false, ticks: false, labelPadding: 6, ...(label ? { labelExpr: label } : { format: ',.6~g' }) },
  };
}

export function curves(block, width) {
  const values = block.series.flatMap(series => series.points.map(([x, y]) => (
    { x, y, series: series.name, xText: text(block.x, x), yText: text(block.y, y) })));
  const names = block.series.map(series => series.name);
  const plot = Math.max(300, width - 90);
  const legend = names.length > 1 ? { ...topLegend(names, plot), symbolType: 'stroke', symbolStrokeWidth: 3 } : null;
  const dashes = [[1, 0], [7, 3], [2, 3], [9, 3, 2, 3]];
  const series = { field: 'series', type: 'nominal', title: null, legend };
  return {
    width: plot, height: 300,
    data: { values },
    mark: { type: 'line', point: { size: 36, filled: true }, strokeWidth: 2 },
    encoding: {
      x: channel(block.x, 'x', values.map(value => value.x)),
      y: channel(block.y, 'y', values.map(value => value.y)),
      color: { ...series, scale: colourScale(names) },
      // Lines that lie on each other are seen all the same.
      strokeDash: { ...series, scale: { domain: names, range: names.map((_, number) => dashes[number % dashes.length]) } },
      tooltip: [{ field: 'series', title: ' ' }, { field: 'xText', title: block.x.name }, { field: 'yText', title: block.y.name }],
    },
  };
}

export const curveNames = block => block.series.map(series => series.name);
