// Numbers as people read them.

export function signed(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : `${value < 0 ? "\u2212" : "+"}${text}`;
}

export function amount(value, unit = "") {
  if (value === null || value === undefined) return "–";
  if (unit === "%") return `${Math.round(value * 100)}%`;
  const size = Math.abs(value);
  if (unit === "USD") return `$${size >= 100 ? value.toFixed(0) : size >= 1 ? value.toFixed(2) : value.toFixed(4)}`;
  if (size >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
  if (size >= 1e4) return `${(value / 1e3).toFixed(1)}k`;
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  if (size >= 1) return value.toFixed(size >= 10 ? 1 : 2);
  return size === 0 ? "0" : size < 0.001 ? value.toExponential(1) : value.toFixed(3);
}

export function counted(value) {
  return Math.round(value).toLocaleString("en");
}

export function seconds(value) {
  if (!value) return "";
  return value < 1 ? `${Math.round(value * 1000)} ms` : value < 120 ? `${value.toFixed(1)} s` : `${(value / 60).toFixed(1)} min`;
}

export function mean(values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}
