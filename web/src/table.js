// A table that can be sorted by its columns.
import { element } from './element.js';

const numberOf = text => {
  const number = Number.parseFloat(text.replaceAll(',', ''));
  return Number.isNaN(number) ? null : number;
};

function compare(a, b, numeric) {
  if (!numeric) return a < b ? -1 : a > b ? 1 : 0;
  const [x, y] = [numberOf(a), numberOf(b)];
  if (x === null || y === null) return (x === null) - (y === null);
  return x - y;
}

export function table(block) {
  const body = element('tbody');
  const fill = rows => body.replaceChildren(...rows.map(row => element('tr', {},
    block.columns.map((column, c) => element('td', column.numeric ? { class: 'number' } : {}, [row[c] ?? ''])))));
  fill(block.rows);
  let sorted = -1, upwards = true;
  const heads = block.columns.map((column, c) => {
    const button = element('button', { type: 'button' }, [column.name]);
    const head = element('th', { scope: 'col', ...(column.numeric ? { class: 'number' } : {}) }, [button]);
    button.addEventListener('click', () => {
      upwards = sorted === c ? !upwards : true;
      sorted = c;
      heads.forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', upwards ? 'ascending' : 'descending');
      const rows = [...block.rows].sort((a, b) => compare(a[c] ?? '', b[c] ?? '', column.numeric));
      fill(upwards ? rows : rows.reverse());
    });
    return head;
  });
  return element('div', { class: 'scroll' }, [element('table', {}, [element('thead', {}, [element('tr', {}, heads)]), body])]);
}
