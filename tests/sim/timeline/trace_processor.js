// Asks Perfetto's trace processor, a worker made from its engine bundle, by its protobuf calls.
const concat = (...parts) => {
  const all = new Uint8Array(parts.reduce((size, p) => size + p.length, 0));
  parts.reduce((at, p) => (all.set(p, at), at + p.length), 0);
  return all;
};
const varint = (n) => {
  const bytes = [];
  for (n = BigInt(n); n >= 128n; n >>= 7n) bytes.push(Number(n & 127n) | 128);
  return Uint8Array.from([...bytes, Number(n)]);
};
const number = (field, n) => concat(varint(field << 3), varint(n));
const bytes = (field, value) => concat(varint((field << 3) | 2), varint(value.length), value);

function* fields(data) {
  let at = 0;
  const next = () => {
    let n = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = data[at++];
      n |= BigInt(byte & 127) << shift;
      if (byte < 128) return n;
    }
  };
  while (at < data.length) {
    const key = Number(next()), kind = key & 7;
    if (kind === 0) yield [key >> 3, next()];
    else {
      const size = kind === 1 ? 8 : Number(next());
      yield [key >> 3, data.subarray(at, at + size)];
      at += size;
    }
  }
}

const channel = new MessageChannel();
new Worker('engine_bundle.js').postMessage(channel.port1, [channel.port1]);
let received = new Uint8Array(), waiting = [], count = 0;
channel.port2.onmessage = ({data}) => {
  received = concat(received, data);
  for (;;) {  // a stream of messages, each with its size before it
    let size = 0, at = 1, shift = 0;
    for (; at < received.length && received[at] >= 128; shift += 7) size += (received[at++] & 127) * 2 ** shift;
    size += received[at++] * 2 ** shift;
    if (!(received.length >= at + size)) return;
    waiting[0](received.slice(at, at + size));
    received = received.slice(at + size);
  }
};
const ask = (method, ...more) => {
  const message = concat(number(1, count++), number(2, method), ...more);
  channel.port2.postMessage(bytes(1, message));
};
const answer = (field, take) => new Promise((done, failed) => {
  waiting = [(message) => {
    for (const [f, value] of fields(message)) {
      if (f === 5) failed(new Error(new TextDecoder().decode(value)));
      if (f === field && take(value) !== false) done();
    }
  }];
});

async function load(trace) {
  const errors = [];
  const check = (value) => {
    for (const [f, v] of fields(value)) if (f === 2) errors.push(new TextDecoder().decode(v));
  };
  ask(1, bytes(101, trace));
  await answer(201, check);
  ask(2);
  await answer(212, check);
  if (errors.length) throw new Error(errors.join());
}

async function query(sql) {
  const columns = [], cells = [];
  const take = (result) => {
    let last = false;
    for (const [f, value] of fields(result)) {
      if (f === 1) columns.push(new TextDecoder().decode(value));
      if (f === 2 && value.length) throw new Error(new TextDecoder().decode(value));
      if (f !== 3) continue;
      let kinds = [], numbers = [], reals = [], texts = [];
      for (const [part, v] of fields(value)) {
        if (part === 1) kinds = [...v];
        if (part === 2) for (let at = 0, n = 0n, shift = 0n; at < v.length; at++) {
          n |= BigInt(v[at] & 127) << shift;
          shift += 7n;
          if (v[at] < 128) { numbers.push(Number(BigInt.asIntN(64, n))); n = 0n; shift = 0n; }
        }
        if (part === 3) reals = [...new Float64Array(v.slice().buffer)];
        if (part === 5) texts = new TextDecoder().decode(v).split('\0');
        if (part === 6) last = v !== 0n;
      }
      const next = [null, () => null, () => numbers.shift(), () => reals.shift(), () => texts.shift()];
      for (const kind of kinds) cells.push(next[kind]());
    }
    return last;
  };
  ask(3, bytes(103, bytes(1, new TextEncoder().encode(sql))));
  await answer(203, take);
  const rows = [];
  while (cells.length) rows.push(cells.splice(0, columns.length));
  return rows;
}
