"use strict";
// Numbers, ranks and rows as text.

function seconds(value) {
  const size = Math.abs(value);
  const [scale, unit] = size === 0 || size >= 0.9995 ? [1, "s"] : size >= 0.9995e-3 ? [1e3, "ms"]
    : size >= 0.9995e-6 ? [1e6, "µs"] : [1e9, "ns"];
  return `${significant(value * scale)} ${unit}`;
}

// Three significant digits, trailing zeros included.
function significant(value) {
  if (value === 0) return "0";
  const text = value.toPrecision(3);
  return text.includes("e") ? integer(value) : text;
}

function integer(value) {
  return Math.round(value).toLocaleString("en-US");
}

function bytes(value) {
  for (const [size, unit] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (value >= size) return `${(value / size).toPrecision(4)} ${unit}`;
  }
  return `${value} B`;
}

function percent(part) {
  if (part >= 0.995) return "100 %";
  return part === 0 ? "0 %" : part < 1e-4 ? "< 0.01 %" : `${Number((part * 100).toPrecision(2))} %`;
}

function plural(number, noun) {
  return `${integer(number)} ${noun}${number === 1 ? "" : "s"}`;
}

function rowName(row) {
  return row.fold ? row.name : row.thread ? `rank ${row.rank}.${row.thread}` : `rank ${row.rank}`;
}

// Ranks as ascending ranges, "0-3,8"; ranksOf() reads them back.
function rankList(ranks) {
  const sorted = [...ranks].sort((a, b) => a - b), runs = [];
  for (const rank of sorted) {
    if (runs.length && runs.at(-1)[1] === rank - 1) runs.at(-1)[1] = rank;
    else runs.push([rank, rank]);
  }
  return runs.map(([a, b]) => a === b ? `${a}` : `${a}-${b}`).join(",");
}

function ranksOf(text, most = 1 << 20) {
  const ranks = new Set();
  for (const part of text.split(",")) {
    const range = part.trim().match(/^(\d+)(?:-(\d+))?$/);
    if (!range) continue;
    const low = Number(range[1]), high = Math.min(Number(range[2] ?? range[1]), low + most);
    for (let rank = low; rank <= high; rank++) ranks.add(rank);
  }
  return ranks;
}

// A test for rows from a text such as "0-3,8 n12": ranks, ranges, or parts of host names. Null if the text is empty.
function rankFilter(text) {
  const parts = text.split(/[\s,]+/).filter(Boolean);
  if (!parts.length) return null;
  const tests = parts.map(part => {
    const range = part.match(/^(\d+)(?:-(\d+))?$/);
    if (!range) return row => row.host.includes(part);
    const [low, high] = [Number(range[1]), Number(range[2] ?? range[1])];
    return row => row.rank >= low && row.rank <= high;
  });
  return row => tests.some(test => test(row));
}
