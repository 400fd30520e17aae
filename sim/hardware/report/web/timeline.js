'use strict';
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId('data').textContent);
const canvas = byId('timeline'), pen = canvas.getContext('2d'), scroll = byId('scroll'), spacer = byId('spacer');

// Blocks: when each begins and ends, in picoseconds, and its row. Those of row r are first[r] to first[r + 1].
const blocks = data.gap.length, begin = new Float64Array(blocks), end = new Float64Array(blocks);
const rowOf = new Uint32Array(blocks), isCritical = new Uint8Array(blocks);
data.rows.forEach((row, r) => {
  for (let b = data.first[r], at = 0; b < data.first[r + 1]; b++) {
    begin[b] = at += data.gap[b];
    end[b] = at += data.duration[b];
    rowOf[b] = r;
  }
});
for (const b of data.critical) isCritical[b] = 1;
const merged = new Map(data.merged.map(([b, count, busy]) => [b, {count, busy}]));
const busyBefore = new Float64Array(blocks + 1);  // the time for which earlier blocks are busy
for (let b = 0; b < blocks; b++)
  busyBefore[b + 1] = busyBefore[b] + (merged.has(b) ? merged.get(b).busy : end[b] - begin[b]);
const rowsIn = data.groups.map(() => []), countersIn = data.groups.map(() => []);
data.rows.forEach((row, r) => rowsIn[row.group].push(r));
data.counters.forEach((counter, c) => countersIn[counter.group].push(c));
const counterRange = data.counters.map((c) => c.values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)],
                                                              [0, 0]));

// What is seen: a span of time, lines of which some groups are folded, a selection, labels that are sought.
const whole = Math.max(data.end, 1), view = {from: 0, to: whole};
// At first the first groups are open, as far as there is room; the others are a line each.
const folded = new Set();
for (let g = 0, room = 48 - data.groups.length; g < data.groups.length && data.groups.length > 1; g++) {
  room -= rowsIn[g].length + countersIn[g].length;
  if (room < 0) folded.add(g);
}
let lines = [], lineOfRow = new Map(), selected = [], sought = null, wide = 0, high = 0;
let gutter = 190;  // of names; less on a small screen
const ruler = 24, heights = {group: 22, row: 20, counter: 34};

function layOut() {
  lines = [];
  let y = ruler;
  const add = (kind, index) => { lines.push({kind, index, y, height: heights[kind]}); y += heights[kind]; };
  data.groups.forEach((name, g) => {
    add('group', g);
    if (folded.has(g)) return;
    rowsIn[g].forEach((r) => add('row', r));
    countersIn[g].forEach((c) => add('counter', c));
  });
  lineOfRow = new Map(lines.filter((l) => l.kind === 'row').map((l) => [l.index, l]));
  for (const l of lines) if (l.kind === 'group' && folded.has(l.index)) for (const r of rowsIn[l.index]) lineOfRow.set(r, l);
  high = Math.min(y + 4, Math.max(200, Math.floor(innerHeight * 0.7)));
  wide = scroll.clientWidth;
  gutter = Math.round(Math.min(190, Math.max(100, 0.27 * wide)));
  const ratio = devicePixelRatio || 1;
  canvas.width = wide * ratio;
  canvas.height = high * ratio;
  canvas.style.width = wide + 'px';
  canvas.style.height = high + 'px';
  spacer.style.height = Math.max(0, y + 4 - high) + 'px';
  redraw();
}

const across = (time) => gutter + (time - view.from) / (view.to - view.from) * (wide - gutter);
const timeAt = (x) => view.from + (x - gutter) / (wide - gutter) * (view.to - view.from);

// The first index in [from, to) for which the predicate, false and then true, holds.
function firstWhere(from, to, holds) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (holds(middle)) to = middle; else from = middle + 1;
  }
  return from;
}

const units = [[1e12, 's'], [1e9, 'ms'], [1e6, 'us'], [1e3, 'ns'], [1, 'ps']];
function timeWords(t, digits = 4) {
  if (t === 0) return '0';
  const [size, unit] = units.find(([s]) => Math.abs(t) >= s) || units[4];
  return +(t / size).toPrecision(digits) + ' ' + unit;
}
function countWords(n, unit) {
  const steps = [[1e18, 'E'], [1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'K']];
  const [size, prefix] = steps.find(([s]) => n >= s) || [1, ''];
  return +(n / size).toPrecision(4) + ' ' + prefix + unit;
}

let colors = {};
const palette = new Map();
function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['paper', 'ink', 'faint', 'line', 'panel', 'busy', 'stalled', 'idle', 'critical'])
    colors[name] = style.getPropertyValue('--' + name).trim();
  colors.dark = matchMedia('(prefers-color-scheme: dark)').matches;
  palette.clear();
}
// A label's colour depends on its text alone, its digits aside, so that "send 1" and "send 2" look alike.
function colorOf(label) {
  if (!palette.has(label)) {
    let hash = 2166136261;
    for (const c of data.labels[label].replace(/\d+/g, '#')) hash = Math.imul(hash ^ c.codePointAt(0), 16777619) >>> 0;
    palette.set(label, `hsl(${hash % 360} 45% ${colors.dark ? 42 : 68}%)`);
  }
  return palette.get(label);
}
const waitColors = ['#0000', '#8d99a6', '#d9822b', '#8a5bc7', '#2f9e63', '#c4314b', '#0f8b8d'];

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}

function draw() {
  const ratio = devicePixelRatio || 1, top = scroll.scrollTop;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = colors.paper;
  pen.fillRect(0, 0, wide, high);
  pen.font = '12px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  const from = firstWhere(0, lines.length, (i) => lines[i].y + lines[i].height > top + ruler);
  for (let i = from; i < lines.length && lines[i].y < top + high; i++) {
    const line = lines[i], y = line.y - top;
    if (line.kind === 'group') drawGroup(line, y);
    if (line.kind === 'row') drawRow(line.index, y, line.height);
    if (line.kind === 'counter') drawCounter(line.index, y, line.height);
  }
  if (byId('critical').checked) drawChain(data.critical, colors.critical, top);
  if (selected.length) drawChain(selected, colors.ink, top);
  drawNames(from, top);
  drawRuler();
}

// A folded group shows all of its rows on its line: the more of them are busy, the denser.
function drawGroup(line, y) {
  pen.fillStyle = colors.panel;
  pen.fillRect(0, y, wide, line.height);
  if (!folded.has(line.index) || !rowsIn[line.index].length) return;
  const columns = Math.max(1, wide - gutter), pixel = (view.to - view.from) / columns;
  const busy = new Float64Array(columns + 1), critical = new Uint8Array(columns + 1);
  let most = 0;
  for (const r of rowsIn[line.index]) {
    const last = data.first[r + 1];
    for (let b = firstWhere(data.first[r], last, (i) => end[i] >= view.from); b < last && begin[b] <= view.to; b++) {
      const share = merged.has(b) ? merged.get(b).busy / Math.max(1, end[b] - begin[b]) : 1;
      const from = Math.max(0, (begin[b] - view.from) / pixel), to = Math.min(columns, (end[b] - view.from) / pixel);
      for (let x = Math.floor(from); x <= to; x++) {
        busy[x] += share * Math.max(0, Math.min(to, x + 1) - Math.max(from, x));
        if (isCritical[b]) critical[x] = 1;
        most = Math.max(most, busy[x]);
      }
    }
  }
  for (let x = 0; x < columns; x++) {
    if (busy[x] <= 0) continue;
    pen.globalAlpha = 0.2 + 0.8 * busy[x] / most;
    pen.fillStyle = colors.busy;
    pen.fillRect(gutter + x, y + 4, 1, line.height - 8);
    pen.globalAlpha = 1;
    if (!critical[x] || !byId('critical').checked) continue;
    pen.fillStyle = colors.critical;
    pen.fillRect(gutter + x, y + 2, 1, 2);
  }
}

function drawNames(from, top) {
  pen.fillStyle = colors.paper;
  pen.fillRect(0, 0, gutter, high);
  for (let i = from; i < lines.length && lines[i].y < top + high; i++) {
    const {kind, index, height} = lines[i], y = lines[i].y - top;
    pen.fillStyle = kind === 'group' ? colors.panel : colors.paper;
    pen.fillRect(0, y, gutter, height);
    pen.fillStyle = kind === 'counter' ? colors.faint : colors.ink;
    const text = kind === 'group' ? (folded.has(index) ? '\u25b8 ' : '\u25be ') + data.groups[index]
                                  : ownName((kind === 'row' ? data.rows : data.counters)[index]);
    clipped(text, kind === 'group' ? 6 : 18, y + height / 2, gutter - (kind === 'group' ? 10 : 22));
  }
  pen.fillStyle = colors.line;
  pen.fillRect(gutter - 1, 0, 1, high);
}

// Below "neuronlink x+" the row "neuronlink x+ of chip 3" is "of chip 3".
function ownName({group, name}) {
  const above = data.groups[group] + ' ';
  return name.startsWith(above) ? name.slice(above.length) : name;
}

function clipped(text, x, y, room) {
  if (room < 14) return;
  const letters = Math.floor(room / 6.2);
  if (text.length > letters && pen.measureText(text).width > room)
    text = text.slice(0, Math.max(1, letters - 1)) + '\u2026';
  pen.fillText(text, x, y, room);
}

function drawRow(r, y, height) {
  const last = data.first[r + 1], pixel = (view.to - view.from) / (wide - gutter);
  let b = firstWhere(data.first[r], last, (i) => end[i] >= view.from);
  while (b < last && begin[b] <= view.to) {
    const x = Math.max(across(begin[b]), gutter - 2), right = Math.min(across(end[b]), wide + 2);
    // What falls on one pixel is drawn once, as dense as it is busy.
    const fine = right - x < 1, next = fine ? firstWhere(b + 1, last, (i) => end[i] > begin[b] + pixel) : b + 1;
    const busy = (busyBefore[next] - busyBefore[b]) / (fine ? pixel : end[b] - begin[b]);
    drawStall(b, r, x, y + height - 5);
    pen.fillStyle = sought && !sought[data.label[b]] ? colors.line : colorOf(data.label[b]);
    pen.globalAlpha = Math.min(1, 0.25 + 0.75 * busy);
    pen.fillRect(x, y + 2, Math.max(right - x, 1), height - 5);
    pen.globalAlpha = 1;
    if (isCritical[b] && byId('critical').checked) {
      pen.fillStyle = colors.critical;
      pen.fillRect(x, y + 1, Math.max(right - x, 1), 2);
    }
    if (right - x > 24) {
      pen.fillStyle = colors.ink;
      const m = merged.get(b);
      clipped(m ? m.count + ' spans' : data.labels[data.label[b]], x + 4, y + height / 2, right - x - 8);
    }
    b = next;
  }
}

// The time for which a block could have begun, after the one before it had ended.
function drawStall(b, r, x, y) {
  if (!data.waited[b]) return;
  const before = b > data.first[r] ? end[b - 1] : 0;
  const from = Math.max(across(Math.max(before, begin[b] - data.waited[b])), gutter);
  if (x - from < 1) return;
  pen.fillStyle = waitColors[data.wait[b]];
  pen.fillRect(from, y, x - from, 2);
}

function drawCounter(c, y, height) {
  const {times, values} = data.counters[c], [low, most] = counterRange[c];
  const level = (v) => y + height - 4 - (v - low) / (most - low || 1) * (height - 8);
  const ground = level(0);
  pen.fillStyle = colors.idle;
  let at = Math.max(0, firstWhere(0, times.length, (i) => times[i] > view.from) - 1);
  for (; at < times.length && times[at] <= view.to; at++) {
    const x = Math.max(across(times[at]), gutter);
    const right = Math.min(at + 1 < times.length ? across(times[at + 1]) : across(data.end), wide);
    const v = level(values[at]);
    pen.fillRect(x, Math.min(v, ground), Math.max(right - x, 1), Math.max(Math.abs(ground - v), 1));
  }
}

// Lines from each block's end to the next one's start.
function drawChain(chain, color, top) {
  pen.strokeStyle = color;
  pen.lineWidth = 1;
  pen.beginPath();
  let drawn = 0;
  for (let i = firstWhere(1, chain.length, (k) => begin[chain[k]] >= view.from); i < chain.length; i++) {
    const a = chain[i - 1], b = chain[i], from = lineOfRow.get(rowOf[a]), to = lineOfRow.get(rowOf[b]);
    if (end[a] > view.to && begin[a] > view.to) break;
    if (!from || !to || from === to) continue;
    const x = across(Math.min(end[a], begin[b]));
    if (drawn && x - drawn < 0.5) continue;
    drawn = x;
    pen.moveTo(x, from.y - top + from.height / 2);
    pen.lineTo(across(begin[b]), to.y - top + to.height / 2);
  }
  pen.stroke();
  if (chain === data.critical) return;
  for (const b of chain) {
    const line = lineOfRow.get(rowOf[b]), x = across(begin[b]);
    if (line) pen.strokeRect(x, line.y - top + 2, Math.max(across(end[b]) - x, 1), line.height - 5);
  }
}

function drawRuler() {
  pen.fillStyle = colors.paper;
  pen.fillRect(0, 0, wide, ruler);
  pen.fillStyle = colors.faint;
  const least = (view.to - view.from) / (wide - gutter) * 90, power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, power * [1, 2, 5, 10].find((k) => k * power >= least));
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
    const x = across(t);
    pen.fillRect(x, ruler - 6, 1, 6);
    if (x + 60 < wide) pen.fillText(timeWords(t, 9), x + 4, ruler / 2);
  }
  pen.fillRect(0, ruler - 1, wide, 1);
  clipped(timeWords(view.to - view.from) + ' shown', 6, ruler / 2, gutter - 12);
}
