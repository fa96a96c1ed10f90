// Colours: those of the style sheet, and one for every name on the page.

// Names that stand on most pages look the same on all of them, and alike where they are of one kind: blue is memory and
// the network on the chip, orange the wire, grey the host, violet who issues and copies, red waiting, green computing. The
// palette's greens come last, so that hardly a name stands beside computing in green.
const known = {
  noc: '#2f6bd8', l1: '#9cc4f5', l2: '#6299ea', msc: '#8bb6f2', hbm: '#274f9e', io: '#2aa1b3', move: '#4a86dd',
  link: '#e8833a', switch: '#f0b14f', nic: '#c65d1e', 'link use': '#e07b2f',
  launch: '#7d8a99', dispatch: '#a7b1bc', software: '#5a6470', skew: '#c3c9d0', finished: '#d9dde2',
  issue: '#8161c9', dma: '#6a4bb0', proxy: '#b39ae3', copy: '#6a4bb0', copies: '#6a4bb0', post: '#9a82d6',
  barrier: '#c8455c', sync: '#c8455c', poll: '#e58a9b', wait: '#e58a9b', fence: '#9e2f5f', flush: '#9e2f5f', peer: '#d36aa8', signal: '#d36aa8',
  compute: '#2e9e5b', kernel: '#3c8f7c', collective: '#e8833a', waiting: '#e58a9b', host: '#7d8a99', idle: '#d9dde2',
  xpu: '#2e9e5b', cpu: '#7d8a99', port: '#9a82d6', memory: '#6299ea', custom: '#c3c9d0',
};
const palette = ['#2f6bd8', '#e8833a', '#8161c9', '#c8455c', '#2aa1b3', '#b98a1e', '#d36aa8', '#6d7f8f', '#9c5a3c', '#4b4fa8', '#e0a72e', '#a83279',
  '#5b8fd6', '#c77b5b', '#88939e', '#7a9a2b', '#5fb58f', '#3a9e6d'];

const names = new Map();

/** Gives names their colours, in order; those that have one keep it. */
export function reserveColours(list) {
  for (const name of list) if (!(Object.hasOwn(known, name)) && !names.has(name)) names.set(name, names.size);
}

export const isDark = () => window.matchMedia('(prefers-color-scheme: dark)').matches;

/** A fifth nearer to white: what stands out from a dark page. */
const lighter = colour => `#${[1, 3, 5].map(at => Math.round(51 + 0.8 * Number.parseInt(colour.slice(at, at + 2), 16)).toString(16).padStart(2, '0')).join('')}`;

export function colourOf(name) {
  reserveColours([name]);
  const colour = Object.hasOwn(known, name) ? known[name] : palette[names.get(name) % palette.length];
  return isDark() ? lighter(colour) : colour;
}

/** A scale of Vega-Lite that has these names. */
export const colourScale = list => ({ domain: list, range: list.map(colourOf) });

export const variable = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** What all charts have in common. */
export function chartConfig() {
  const font = variable('--font'), ink = variable('--ink'), quiet = variable('--quiet'), line = variable('--line');
  return {
    background: null,
    font,
    view: { stroke: null },
    axis: {
      labelColor: quiet, labelFontSize: 12, labelLimit: 0, titleColor: quiet, titleFontSize: 12, titleFontWeight: 'normal',
      domainColor: line, gridColor: line, tickColor: line, titlePadding: 8,
    },
    legend: {
      labelColor: ink, labelFontSize: 12, titleColor: quiet, titleFontSize: 12, titleFontWeight: 'normal', symbolType: 'square',
      symbolSize: 110, labelLimit: 260, columnPadding: 16,
    },
    text: { color: ink, fontSize: 12 },
    title: { color: ink, fontSize: 13, fontWeight: 600, anchor: 'start' },
  };
}

const canvas = document.createElement('canvas').getContext('2d');

/** Pixels that a text takes. */
export function textWidth(text, size = 12) {
  canvas.font = `${size}px ${variable('--font')}`;
  return canvas.measureText(text).width;
}

/** Of the longest text, at most `most`. */
export const widest = (texts, most, size = 12) => Math.ceil(Math.min(most, texts.reduce((w, t) => Math.max(w, textWidth(t, size)), 0)));

/** A legend above a chart, in as few rows as surely fit; none for so many names that nobody would look them up. */
export function topLegend(list, width) {
  if (list.length > 40) return null;
  // Columns are as wide as their widest name, so names of one row are no measure.
  const columns = Math.max(1, Math.floor(width / (widest(list, Infinity) + 36)));
  const rows = Math.ceil(list.length / columns);
  return { orient: 'top', direction: 'horizontal', columns: Math.ceil(list.length / rows), padding: 0, offset: 12 };
}
