// Time seen, kept within the whole and no finer than ten picoseconds.
function show(from, to) {
  const length = Math.min(Math.max(to - from, Math.min(10, whole)), whole);
  view.from = Math.min(Math.max(from, 0), whole - length);
  view.to = view.from + length;
  hideTip();
  redraw();
}
function zoom(factor, x = (gutter + wide) / 2) {
  const t = timeAt(Math.max(x, gutter));
  show(t - (t - view.from) / factor, t + (view.to - t) / factor);
}
const move = (share) => show(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));

// The line at a height of the canvas, and the block there: the nearest one within two pixels.
function lineAt(y) {
  const at = y + scroll.scrollTop;
  const i = firstWhere(0, lines.length, (k) => lines[k].y + lines[k].height > at);
  return y > ruler && i < lines.length && lines[i].y <= at ? lines[i] : null;
}
function blockAt(x, y) {
  const line = lineAt(y);
  if (!line || line.kind !== 'row' || x < gutter) return -1;
  const first = data.first[line.index], last = data.first[line.index + 1], t = timeAt(x);
  const next = firstWhere(first, last, (i) => end[i] >= t);
  let best = -1, distance = 2.5;
  for (const b of [next - 1, next]) {
    if (b < first || b >= last) continue;
    const away = Math.max(across(begin[b]) - x, x - across(end[b]), 0);
    if (away < distance) { best = b; distance = away; }
  }
  return best;
}

// Where a block's middle is on the page, for whoever points at it.
function place(b) {
  const box = canvas.getBoundingClientRect(), line = lineOfRow.get(rowOf[b]);
  return {x: box.left + across((begin[b] + end[b]) / 2), y: box.top + line.y - scroll.scrollTop + line.height / 2};
}

const tip = byId('tip');
function hideTip() { tip.hidden = true; }
function facts(b) {
  const row = data.rows[rowOf[b]], length = end[b] - begin[b], m = merged.get(b), seconds = length * 1e-12;
  const list = [['on', (data.groups[row.group] ? data.groups[row.group] + ', ' : '') + row.name],
                ['start', timeWords(begin[b], 12)], ['duration', timeWords(length, 12)]];
  if (m) list.push(['merged', m.count + ' short spans'], ['busy', (100 * m.busy / (length || 1)).toFixed(1) + '%']);
  if (data.wait[b]) list.push(['waited for', `${data.waits[data.wait[b]]}, ${timeWords(data.waited[b], 6)}`]);
  if (data.cause[b] >= 0) {
    const cause = data.cause[b], on = data.rows[rowOf[cause]];
    list.push(['after', `${data.labels[data.label[cause]]} (${data.groups[on.group]}, ${on.name})`]);
  }
  if (data.bytes[b]) list.push(['bytes', countWords(data.bytes[b], 'B') +
                                         (length ? ', ' + countWords(data.bytes[b] / seconds, 'B/s') : '')]);
  if (data.flops[b]) list.push(['flops', countWords(data.flops[b], 'FLOP') +
                                         (length ? ', ' + countWords(data.flops[b] / seconds, 'FLOP/s') : '')]);
  if (isCritical[b]) list.push(['', 'on the critical path']);
  return list;
}
function showTip(title, list, x, y) {
  tip.textContent = '';
  tip.appendChild(document.createElement('b')).textContent = title;
  const table = tip.appendChild(document.createElement('table'));
  for (const [key, value] of list) {
    const cells = table.insertRow();
    cells.insertCell().textContent = key;
    cells.insertCell().textContent = value;
  }
  tip.hidden = false;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = Math.max(4, y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18) + 'px';
}
function pointAt(event) {
  const b = blockAt(event.offsetX, event.offsetY), line = lineAt(event.offsetY);
  canvas.style.cursor = b >= 0 || (line && line.kind === 'group') ? 'pointer' : 'default';
  if (b >= 0) {
    const m = merged.get(b);
    return showTip(m ? m.count + ' spans' : data.labels[data.label[b]], facts(b), event.clientX, event.clientY);
  }
  if (!line || line.kind !== 'counter' || event.offsetX < gutter) return hideTip();
  const {name, times, values} = data.counters[line.index], t = timeAt(event.offsetX);
  const at = firstWhere(0, times.length, (i) => times[i] > t) - 1;
  if (at < 0) return hideTip();
  showTip(name, [['value', String(values[at])], ['since', timeWords(times[at], 12)]], event.clientX, event.clientY);
}

// A block and what it waited for, back to the first, in the order of time.
function chainOf(b) {
  const chain = [], seen = new Set();
  for (; b >= 0 && !seen.has(b); b = data.cause[b]) { seen.add(b); chain.push(b); }
  return chain.reverse();
}

let held = null;
canvas.addEventListener('pointerdown', (event) => {
  held = {x: event.offsetX, from: view.from, to: view.to, moved: false};
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener('pointermove', (event) => {
  if (!held) return pointAt(event);
  if (Math.abs(event.offsetX - held.x) > 3) held.moved = true;
  if (!held.moved) return;
  const time = (held.x - event.offsetX) / (wide - gutter) * (held.to - held.from);
  show(held.from + time, held.to + time);
});
canvas.addEventListener('pointerup', (event) => {
  const click = held && !held.moved;
  held = null;
  if (!click) return;
  const line = lineAt(event.offsetY);
  if (line && line.kind === 'group') {
    if (!folded.delete(line.index)) folded.add(line.index);
    sayFold();
    return layOut();
  }
  const b = blockAt(event.offsetX, event.offsetY);
  selected = b < 0 ? [] : chainOf(b);
  redraw();
});
canvas.addEventListener('pointercancel', () => { held = null; });
canvas.addEventListener('pointerleave', hideTip);
canvas.addEventListener('dblclick', (event) => {
  const b = blockAt(event.offsetX, event.offsetY);
  if (b >= 0) show(begin[b] - 0.1 * (end[b] - begin[b]), end[b] + 0.1 * (end[b] - begin[b]));
});
canvas.addEventListener('wheel', (event) => {
  if (!event.ctrlKey && !event.metaKey && !event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
  event.preventDefault();
  if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY * 0.002), event.offsetX);
  else move((event.deltaX || event.deltaY) * 0.001);
}, {passive: false});
addEventListener('keydown', (event) => {
  if (event.target.tagName === 'INPUT' || event.ctrlKey || event.metaKey || event.altKey) return;
  const does = {w: () => zoom(1.5), s: () => zoom(1 / 1.5), a: () => move(-0.2), d: () => move(0.2),
                ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), 0: () => show(0, whole),
                Escape: () => { selected = []; hideTip(); redraw(); }}[event.key];
  if (does) does();
});
byId('in').onclick = () => zoom(2);
byId('out').onclick = () => zoom(0.5);
byId('all').onclick = () => show(0, whole);
byId('critical').onchange = redraw;
const sayFold = () => { byId('fold').textContent = folded.size ? 'unfold all' : 'fold all'; };
byId('fold').onclick = () => {
  if (folded.size) folded.clear(); else data.groups.forEach((_, g) => folded.add(g));
  sayFold();
  layOut();
};
byId('find').oninput = () => {
  const text = byId('find').value.toLowerCase();
  sought = text ? data.labels.map((label) => label.toLowerCase().includes(text)) : null;
  let found = 0;
  for (let b = 0; sought && b < blocks; b++) found += sought[data.label[b]];
  byId('found').textContent = sought ? found + ' blocks' : '';
  redraw();
};
function explain(background, words) {
  const entry = byId('legend').appendChild(document.createElement('span'));
  entry.appendChild(document.createElement('i')).style.background = background;
  entry.append(words);
}
explain('linear-gradient(90deg, hsl(210 45% 55%), hsl(120 45% 55%), hsl(30 45% 55%))', 'a colour for each label');
explain('var(--busy)', 'a folded group: denser where more of its rows are busy; click on its name to unfold it');
explain('var(--critical)', 'the critical path');
if (data.counters.length) explain('var(--idle)', 'a counter');
for (const w of new Set(data.wait)) if (w) explain(waitColors[w], 'waiting: ' + data.waits[w]);
scroll.addEventListener('scroll', () => { hideTip(); redraw(); });
addEventListener('resize', layOut);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readColors(); redraw(); });
readColors();
sayFold();
layOut();
