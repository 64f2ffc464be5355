// Differences of two lists, bounded: what differs too much is said to differ as a whole.

const MOST_EDITS = 1200;
const MOST_WORD_EDITS = 160;
const MOST_WORDS = 1500;

// Which items two lists have in common, in order: pairs of positions. Greedy shortest edit script (Myers 1986).
export function common(a, b, most = MOST_EDITS) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let endA = a.length;
  let endB = b.length;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
  const pairs = [];
  for (let i = 0; i < start; i += 1) pairs.push([i, i]);
  pairs.push(...middle(a, b, start, endA, endB, most));
  for (let i = endA, j = endB; i < a.length; i += 1, j += 1) pairs.push([i, j]);
  return pairs;
}

function middle(a, b, start, endA, endB, most) {
  const [n, m] = [endA - start, endB - start];
  if (!n || !m) return [];
  const limit = Math.min(n + m, most);
  const reach = new Int32Array(2 * limit + 3);
  const zero = limit + 1;
  const trace = [];
  for (let d = 0; d <= limit; d += 1) {
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && reach[zero + k - 1] < reach[zero + k + 1]);
      let x = down ? reach[zero + k + 1] : reach[zero + k - 1] + 1;
      let y = x - k;
      while (x < n && y < m && a[start + x] === b[start + y]) [x, y] = [x + 1, y + 1];
      reach[zero + k] = x;
      if (x >= n && y >= m) return walkBack(trace, reach, zero, d, n, m, start);
    }
    trace.push(reach.slice(zero - d, zero + d + 1));
  }
  return [];
}

function walkBack(trace, reach, zero, edits, n, m, start) {
  const pairs = [];
  let [x, y] = [n, m];
  for (let d = edits; d > 0; d -= 1) {
    const before = trace[d - 1];
    const at = (k) => (Math.abs(k) > d - 1 ? -1 : before[k + d - 1]);
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const fromK = down ? k + 1 : k - 1;
    const fromX = at(fromK);
    const fromY = fromX - fromK;
    const [toX, toY] = down ? [fromX, fromY + 1] : [fromX + 1, fromY];
    while (x > toX && y > toY) pairs.push([start + (x -= 1), start + (y -= 1)]);
    [x, y] = [fromX, fromY];
  }
  while (x > 0 && y > 0) pairs.push([start + (x -= 1), start + (y -= 1)]);
  return pairs.reverse();
}

function wordsOf(text) {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}

// What of two lines differs, as ranges of characters on each side; null when that is nearly all.
export function wordRanges(left, right) {
  const [a, b] = [wordsOf(left), wordsOf(right)];
  if (a.length > MOST_WORDS || b.length > MOST_WORDS) return null;
  const pairs = common(a, b, MOST_WORD_EDITS);
  const shared = pairs.reduce((sum, [i]) => sum + a[i].trim().length, 0);
  const size = Math.max(left.replace(/\s/g, "").length, right.replace(/\s/g, "").length);
  if (size && shared / size < 0.3) return null;
  return [ranges(a, new Set(pairs.map((p) => p[0]))), ranges(b, new Set(pairs.map((p) => p[1])))];
}

function ranges(words, same) {
  const found = [];
  let at = 0;
  words.forEach((word, number) => {
    const end = at + word.length;
    const last = found[found.length - 1];
    const between = !word.trim() && number > 0 && number + 1 < words.length && !same.has(number - 1) && !same.has(number + 1);
    if (between || !same.has(number)) {
      if (last && last[1] === at) last[1] = end;
      else found.push([at, end]);
    }
    at = end;
  });
  return found;
}

// Rows of two lists of patch lines side by side: { left, right, ranges } with null where a side has none.
export function sideBySide(left, right) {
  const key = (line) => line[0] + line[1];
  const pairs = common(left.map(key), right.map(key));
  const rows = [];
  let [i, j] = [0, 0];
  for (const [x, y] of [...pairs, [left.length, right.length]]) {
    rows.push(...block(left.slice(i, x), right.slice(j, y)));
    if (x < left.length) rows.push({ left: left[x], right: right[y], same: true });
    [i, j] = [x + 1, y + 1];
  }
  return rows;
}

// Lines between two that are equal: those of one sign stand against each other.
function block(left, right) {
  const rows = [];
  const rest = [...right];
  for (const line of left) {
    const at = rest.findIndex((other) => other[0] === line[0]);
    if (at !== 0) {
      rows.push({ left: line, right: null });
      continue;
    }
    const other = rest.shift();
    rows.push({ left: line, right: other, ranges: wordRanges(line[1], other[1]) });
  }
  rows.push(...rest.map((line) => ({ left: null, right: line })));
  return rows;
}
