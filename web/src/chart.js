// Charts in the page: Vega-Lite draws them, again when the window or its colours change.
import embed from 'vega-embed';
import { barNames, bars } from './bars.js';
import { curveNames, curves } from './curves.js';
import { element } from './element.js';
import { graph, graphNames } from './graph.js';
import { heatMap } from './heat_map.js';
import { chartConfig, isDark, reserveColours } from './theme.js';
import { kindNames, timelines, wholeTime } from './timelines.js';

const specs = { bars, curves, graph, heat_map: heatMap, timelines };
const namesOf = { bars: barNames, curves: curveNames, graph: graphNames, heat_map: () => [], timelines: kindNames };

const isLarge = block => block.type === 'timelines' || (block.type === 'heat_map' && block.values.length * block.columns.length > 1500);

/** Buttons that stretch time around the middle of what is shown. */
function zoomButtons(block, current) {
  const whole = wholeTime(block);
  const zoom = factor => () => {
    const view = current().view;
    const [begin, end] = factor ? view.signal('zoom').begin ?? whole : whole;
    const middle = (begin + end) / 2, half = (end - begin) / 2 * (factor || 1);
    view.signal('zoom_begin', [middle - half, middle + half]).runAsync();
  };
  const button = (text, title, factor) => {
    const made = element('button', { type: 'button', title }, [text]);
    made.addEventListener('click', zoom(factor));
    return made;
  };
  return element('div', { class: 'zoom' }, [
    button('+', 'zoom in', 0.5), button('\u2212', 'zoom out', 2), button('all', 'show all of it', 0),
    element('span', {}, ['drag to move, Ctrl + wheel or pinch to zoom, point at a span for its exact times'])]);
}

export function reserveNames(blocks) {
  for (const block of blocks) if (namesOf[block.type]) reserveColours(new Set(namesOf[block.type](block)));
}

export const isChart = block => block.type in specs;

/** Puts the chart into the section; resolves once it is there. */
export function chart(block, section) {
  const place = element('div', { class: 'chart', 'data-type': block.type });
  let result = null;
  const draw = async () => {
    const spec = { $schema: 'https://vega.github.io/schema/vega-lite/v6.json', ...specs[block.type](block, place.clientWidth - 4), config: chartConfig() };
    const next = await embed(place, spec, {
      renderer: isLarge(block) ? 'canvas' : 'svg',
      actions: { export: { svg: true, png: true }, source: false, compiled: false, editor: false },
      downloadFileName: (block.heading || block.type).replace(/[^A-Za-z0-9]+/g, '_').toLowerCase(),
      tooltip: { theme: isDark() ? 'dark' : 'light', disableDefaultStyle: false },
    });
    if (result) result.finalize();
    result = next;
  };
  if (block.type === 'timelines') section.append(zoomButtons(block, () => result));
  section.append(place);
  let waiting = 0, width = window.innerWidth;
  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(draw, 150);
  };
  window.addEventListener('resize', () => {
    if (window.innerWidth !== width) later();
    width = window.innerWidth;
  });
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', later);
  return draw();
}
