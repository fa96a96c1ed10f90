// What happened when: panels of tracks on one axis of time that the reader moves and stretches.
import { exactNs } from './numbers.js';
import { colourScale, topLegend, variable, widest } from './theme.js';

/** Gives each span the first row that is free when it begins; returns how many rows there are. */
export function dealToRows(spans) {
  const ends = [];
  const order = spans.map((_, number) => number).sort((a, b) => spans[a].begin - spans[b].begin || spans[b].end - spans[a].end);
  const rows = new Array(spans.length);
  for (const number of order) {
    let row = ends.findIndex(end => end <= spans[number].begin);
    if (row < 0) row = ends.length;
    ends[row] = Math.max(spans[number].end, ends[row] ?? 0);
    rows[number] = row;
  }
  return { rows, count: Math.max(1, ends.length) };
}

/** The first and the last nanosecond of all panels. */
export function wholeTime(block) {
  let begin = Infinity, end = -Infinity;
  for (const panel of block.panels) for (const track of panel.tracks) for (const span of track.spans) {
    begin = Math.min(begin, span.begin);
    end = Math.max(end, span.end);
  }
  return begin < end ? [Math.min(0, begin), end] : [0, Math.max(1, end)];
}

function layout(panel) {
  const values = [], labels = [];
  for (const track of panel.tracks) {
    const { rows, count } = dealToRows(track.spans);
    const first = labels.length;
    for (let row = 0; row < count; ++row) labels.push(row === 0 ? track.name : '');
    track.spans.forEach((span, number) => values.push({
      row: first + rows[number], begin: span.begin, end: span.end, name: span.name, kind: span.kind, weight: 0.12 + 0.88 * span.weight,
      track: track.name, from: exactNs(span.begin), to: exactNs(span.end), time: exactNs(Number((span.end - span.begin).toFixed(6))), detail: span.detail,
    }));
  }
  return { values, labels };
}

/** Of one chart: `kinds` are those of all panels. */
export function timelines(block, width) {
  const [begin, end] = wholeTime(block);
  const panels = block.panels.map(layout);
  const kinds = [...new Set(panels.flatMap(panel => panel.values.map(value => value.kind)))];
  const left = widest(panels.flatMap(panel => panel.labels), 300) + 14;
  const plot = Math.max(300, width - left - 24);
  const micro = end - begin >= 5000;
  const rowsInAll = panels.reduce((sum, panel) => sum + panel.labels.length, 0);
  const step = rowsInAll > 120 ? 11 : rowsInAll > 50 ? 15 : 20;
  const x = {
    field: 'begin', type: 'quantitative', scale: { domain: [begin, end], nice: false }, title: null,
    axis: {
      orient: 'top', grid: true, tickCount: 10, domain: false, ticks: false, labelFlush: true, labelBound: true,
      labelExpr: micro ? "format(datum.value / 1000, ',.6~f') + ' us'" : "format(datum.value, ',.6~f') + ' ns'",
    },
  };
  const x2 = { field: 'end' };
  // Names stand in spans that have room for some letters.
  const shown = `(zoom.begin ? zoom.begin[1] - zoom.begin[0] : ${end - begin})`;
  const room = `(min(datum.end, zoom.begin ? zoom.begin[1] : ${end}) - max(datum.begin, zoom.begin ? zoom.begin[0] : ${begin})) * ${plot} / ${shown}`;
  const vconcat = panels.map((panel, number) => {
    const y = {
      field: 'row', type: 'ordinal', sort: null, title: null,
      scale: { domain: panel.labels.map((_, row) => row), paddingInner: step > 12 ? 0.15 : 0.1, paddingOuter: 0.15 },
      axis: { labelExpr: `labels${number}[datum.value]`, ticks: false, domain: false, minExtent: left, maxExtent: left, labelLimit: 300, labelPadding: 6, labelColor: variable('--ink'), labelFontSize: step > 12 ? 12 : 9 },
    };
    return {
      name: `panel${number}`, width: plot, height: { step },
      ...(block.panels[number].name ? { title: { text: block.panels[number].name, frame: 'bounds' } } : {}),
      data: { values: panel.values },
      layer: [
        {
          name: `spans${number}`,
          mark: { type: 'rect', clip: true, stroke: variable('--paper'), strokeWidth: 0.6, strokeOpacity: 0.8, minBandSize: 1 },
          encoding: {
            x, x2, y,
            color: { field: 'kind', type: 'nominal', title: null, scale: colourScale(kinds), legend: topLegend(kinds, plot) },
            fillOpacity: { field: 'weight', type: 'quantitative', scale: null },
            tooltip: [{ field: 'track', title: ' ' }, { field: 'name', title: 'what' }, { field: 'kind', title: 'kind' }, { field: 'from', title: 'from' }, { field: 'to', title: 'to' },
              { field: 'time', title: 'takes' }, ...(panel.values.some(value => value.detail) ? [{ field: 'detail', title: 'detail' }] : [])],
          },
        },
        ...(step > 12 ? [{
          transform: [{ filter: `${room} > 26 && datum.weight > 0.6` }, { calculate: `${room} - 8`, as: 'room' }, { calculate: `max(datum.begin, zoom.begin ? zoom.begin[0] : ${begin})`, as: 'at' }],
          mark: { type: 'text', clip: true, align: 'left', dx: 4, fontSize: 11, color: '#ffffff', limit: { expr: 'datum.room' }, tooltip: null },
          encoding: { x: { field: 'at', type: 'quantitative' }, y, text: { field: 'name' } },
        }] : []),
      ],
    };
  });
  return {
    params: [
      ...panels.map((panel, number) => ({ name: `labels${number}`, value: panel.labels })),
      {
        name: 'zoom', bind: 'scales', views: panels.map((_, number) => `spans${number}`),
        select: { type: 'interval', encodings: ['x'], zoom: 'wheel![event.ctrlKey || event.metaKey]' },
      },
    ],
    vconcat, spacing: 14, resolve: { legend: { color: 'shared' }, scale: { x: 'independent', y: 'independent' } },
  };
}

export const kindNames = block => block.panels.flatMap(panel => panel.tracks.flatMap(track => track.spans.map(span => span.kind)));
