// A curve: what was measured in pale, its running mean in full, a reading under the pointer.
import { el } from "./inert.js";
import { amount, mean } from "./numbers.js";
import { drawing, svg } from "./svg.js";

const WIDTH = 340;
const HEIGHT = 108;
const LEFT = 36; // beside the words at the edges
const RIGHT = 8;
const TOP = 10;
const BOTTOM = 6;
const SMOOTH_FROM = 10;

export function chart(curve, axis = "group") {
  const known = curve.points.filter((point) => point[1] !== null);
  const last = known.length ? known[known.length - 1][1] : null;
  const reading = el("output", { class: "reading", title: "mean" }, known.length ? amount(mean(known.map((p) => p[1])), curve.unit) : "–");
  const unit = ["", "%", "USD"].includes(curve.unit) ? "" : curve.unit;
  const said = [unit, curve.hint].filter(Boolean).join(", ");
  const head = el("figcaption", {}, el("b", {}, curve.title), reading, el("small", { class: "dim" }, said || "\u00a0"));
  const figure = el("figure", { class: "chart" }, head);
  if (!known.length) {
    figure.append(el("p", { class: "nothing" }, "nothing recorded"));
    return figure;
  }
  const values = known.map((point) => point[1]);
  let low = Math.min(...values, curve.low ?? Infinity);
  let high = Math.max(...values);
  if (curve.unit === "%") high = 1;
  if (high - low < 1e-12) [low, high] = curve.low === null ? [low - 1, high + 1] : [low, high + 1];
  const first = known[0][0];
  const span = Math.max(1e-9, known[known.length - 1][0] - first);
  const x = (value) => (known.length === 1 ? WIDTH / 2 : LEFT + ((value - first) / span) * (WIDTH - LEFT - RIGHT));
  const y = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const words = `${curve.title}${curve.hint ? `, ${curve.hint}` : ""}: from ${amount(values[0], curve.unit)} to ${amount(last, curve.unit)}, lowest ${amount(Math.min(...values), curve.unit)}, highest ${amount(Math.max(...values), curve.unit)}`;
  const smooth = known.length >= SMOOTH_FROM;
  const guide = svg("line", { class: "guide", x1: 0, x2: 0, y1: TOP - 6, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  const picture = drawing(WIDTH, HEIGHT, words,
    svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(high), y2: y(high) }),
    svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(low), y2: y(low) }),
    svg("path", { class: smooth ? "raw" : "main", d: path(curve.points, x, y) }),
    smooth ? svg("path", { class: "main", d: path(smoothed(curve.points), x, y) }) : null,
    known.length <= 40 ? known.map((p) => svg("circle", { class: "dot", cx: x(p[0]), cy: y(p[1]), r: smooth ? 1.6 : 2.4 })) : null,
    svg("text", { class: "edge", x: 3, y: y(high) - 2 }, amount(high, curve.unit)),
    svg("text", { class: "edge", x: 3, y: y(low) - 2 }, amount(low, curve.unit)),
    guide);
  const rest = reading.textContent;
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    const near = known.reduce((best, p) => (Math.abs(x(p[0]) - at) < Math.abs(x(best[0]) - at) ? p : best));
    guide.setAttribute("x1", x(near[0]));
    guide.setAttribute("x2", x(near[0]));
    guide.setAttribute("visibility", "visible");
    reading.textContent = `${axis} ${near[0]}: ${amount(near[1], curve.unit)}`;
  });
  picture.addEventListener("pointerleave", () => {
    guide.setAttribute("visibility", "hidden");
    reading.textContent = rest;
  });
  figure.append(picture);
  return figure;
}

function path(points, x, y) {
  let pen = "M";
  let text = "";
  for (const [at, value] of points) {
    if (value === null) {
      pen = "M";
      continue;
    }
    text += `${pen}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
  }
  return text;
}

function smoothed(points) {
  const known = points.filter((point) => point[1] !== null);
  const reach = Math.max(2, Math.round(known.length / 14));
  return known.map((point, number) => [point[0], mean(known.slice(Math.max(0, number - reach), number + reach + 1).map((p) => p[1]))]);
}
