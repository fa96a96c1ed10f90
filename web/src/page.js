// Builds the page from the JSON that stands in it (src/report/page.h has the words for all of it).
import { chart, isChart, reserveNames } from './chart.js';
import { element } from './element.js';
import './page.css';
import { table } from './table.js';

const model = JSON.parse(document.getElementById('model').textContent);

/** An error is said on the page, and where tools/check page finds it. */
function complain(error) {
  document.body.dataset.error = String(error);
  document.body.prepend(element('p', { class: 'error' }, [`This page could not be drawn: ${error}`]));
}
window.addEventListener('error', event => complain(event.message));
window.addEventListener('unhandledrejection', event => complain(event.reason));

function head() {
  const parts = [element('h1', {}, [model.title])];
  if (model.subtitle) parts.push(element('pre', { class: 'command' }, [model.subtitle]));
  if (model.facts.length) {
    parts.push(element('dl', { class: 'facts' }, model.facts.map(([name, value]) => (
      element('div', {}, [element('dt', {}, [name]), element('dd', {}, [value])])))));
  }
  return element('header', {}, parts);
}

function sectionOf(block) {
  const section = element('section');
  if (block.heading) section.append(element('h2', {}, [block.heading]));
  if (block.note) section.append(element('p', { class: 'note' }, [block.note]));
  return section;
}

async function build() {
  const main = element('main');
  document.body.append(head(), main);
  reserveNames(model.blocks);
  for (const block of model.blocks) {
    const section = sectionOf(block);
    main.append(section);
    if (block.type === 'text') section.append(...block.paragraphs.map(text => element('p', {}, [text])));
    else if (block.type === 'table') section.append(table(block));
    else if (isChart(block)) await chart(block, section);
    else throw new Error(`a block of the unknown type ${block.type}`);
  }
  document.body.dataset.state = 'drawn';
}

build().catch(complain);
