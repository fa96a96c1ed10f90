// A matrix in colours.
import { short } from './numbers.js';
import { isDark, variable, widest } from './theme.js';

export function heatMap(block, width) {
  const values = [];
  block.values.forEach((row, r) => row.forEach((value, c) => {
    if (value !== null) values.push({ row: block.rows[r], column: block.columns[c], value, text: `${short(value)} ${block.unit}`, inside: short(value) });
  }));
  const left = widest(block.rows, 240) + 12;
  const room = width - left - 130;
  const cell = Math.max(7, Math.min(52, Math.floor(room / Math.max(1, block.columns.length))));
  // Few rows are high enough for all of their names.
  const height = Math.max(block.rows.length <= 24 ? 18 : 7, Math.min(30, cell));
  const labelled = cell >= widest(values.map(value => value.inside), 200, 11) + 6 && height >= 16;
  const steep = widest(block.columns, 200) + 4 > cell;
  const most = Math.max(0, ...values.map(value => value.value));
  const axis = { domain: false, ticks: false, labelColor: variable('--ink'), labelOverlap: cell < 13 };
  const x = { field: 'column', type: 'ordinal', title: block.column_title, sort: null, scale: { domain: block.columns, padding: 0 }, axis: { ...axis, orient: 'top', labelAngle: steep ? -60 : 0 } };
  const y = { field: 'row', type: 'ordinal', title: block.row_title, sort: null, scale: { domain: block.rows, padding: 0 }, axis: { ...axis, labelOverlap: height < 13, labelLimit: 240 } };
  const range = isDark() ? ['#1d2b44', '#2f6bd8', '#a9cbff'] : ['#dde9fc', '#6798ec', '#123a86'];
  const layer = [{
    mark: { type: 'rect', stroke: variable('--paper'), strokeWidth: cell > 12 ? 1.5 : 0.5, cornerRadius: cell > 20 ? 3 : 0 },
    encoding: {
      x, y,
      color: { field: 'value', type: 'quantitative', title: block.unit, scale: { domain: [0, most / 2 || 0.5, most || 1], range }, legend: { gradientLength: Math.min(200, Math.max(60, height * block.rows.length - 20)), gradientThickness: 12 } },
      tooltip: [{ field: 'row', title: block.row_title || 'row' }, { field: 'column', title: block.column_title || 'column' }, { field: 'text', title: 'value' }],
    },
  }];
  if (labelled) {
    const bright = isDark() ? `datum.value < ${0.72 * most}` : `datum.value > ${0.42 * most}`;
    layer.push({
      mark: { type: 'text', fontSize: 11 },
      encoding: { x, y, text: { field: 'inside' }, color: { condition: { test: bright, value: '#ffffff' }, value: '#12213a' } },
    });
  }
  return { width: cell * block.columns.length, height: height * block.rows.length, data: { values }, layer };
}
