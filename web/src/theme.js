// Colours: those of the style sheet, and one for every name on the page.

const palette = {
  light: ['#2f6bd8', '#e8833a', '#3a9e6d', '#c8455c', '#8161c9', '#b98a1e', '#2aa1b3', '#d36aa8', '#6d7f8f', '#7a9a2b',
    '#9c5a3c', '#4b4fa8', '#e0a72e', '#5fb58f', '#a83279', '#5b8fd6', '#c77b5b', '#88939e'],
  dark: ['#5b93f5', '#f09a57', '#58bd8a', '#e56b80', '#a489ea', '#d6aa45', '#4cc0d1', '#e78cc3', '#93a4b4', '#9dbd4b',
    '#c17d5d', '#7c80d8', '#f0c35e', '#7fd0ac', '#cf5f9f', '#84aeea', '#e09a7c', '#a9b4bf'],
};

const names = new Map();

/** Gives names their colours, in order; those that have one keep it. */
export function reserveColours(list) {
  for (const name of list) if (!names.has(name)) names.set(name, names.size);
}

export const isDark = () => window.matchMedia('(prefers-color-scheme: dark)').matches;

export function colourOf(name) {
  reserveColours([name]);
  const colours = palette[isDark() ? 'dark' : 'light'];
  return colours[names.get(name) % colours.length];
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
