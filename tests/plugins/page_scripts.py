"""What tests of the page ask in the page, in its own language."""

STRIPS = """() => [...document.querySelectorAll('.strip g')]
  .map((g) => [...g.querySelectorAll('rect')].map((rect) => rect.width.baseVal.value))"""
"""Widths of each member in the strips of the sum, before and after."""

NAMELESS = """() => [...document.querySelectorAll(
    'button, select, input, svg[role=img], nav, dialog, meter, [role=tablist], pre[tabindex]')]
  .filter((n) => !(n.getAttribute('aria-label') || n.getAttribute('aria-labelledby') || n.textContent.trim())).length"""
"""How many controls and drawings have no name."""

LISTENERS = """() => [...document.querySelectorAll('*')]
  .filter((n) => [...n.attributes].some((a) => a.name.startsWith('on'))).length"""
"""How many elements have a listener in an attribute."""

REFUSED = """() => {
  const tries = {
    markup: () => { document.createElement('p').innerHTML = '<b>x</b>'; },
    code: () => { document.createElement('script').textContent = 'window.ran = 1'; },
    policy: () => trustedTypes.createPolicy('mine', {}),
  };
  const fails = (run) => { try { run(); return false; } catch { return true; } };
  return Object.entries(tries).filter(([, run]) => fails(run)).map(([name]) => name);
}"""
"""What the browser does not let a script of the page do."""

FOREIGN_IMAGE = """async () => {
  const blocked = new Promise((done) => {
    document.addEventListener('securitypolicyviolation', () => done('blocked'), { once: true });
  });
  const image = document.createElement('img');
  image.src = 'https://example.invalid/x.png';
  document.body.append(image);
  return blocked;
}"""

FRAMED = """(url) => new Promise((done) => {
  const frame = document.createElement('iframe');
  frame.onload = () => done(frame.contentDocument === null);
  frame.src = url;
  document.body.append(frame);
})"""
"""Whether another site that frames the page sees nothing of it."""

CONTRAST = """() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = (node) => {
    for (let n = node; n; n = n.parentElement) {
      const colour = parse(getComputedStyle(n).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const ratio = (node) => {
    const [high, low] = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  return [...document.querySelectorAll('main *, .side *')]
    .filter((n) => !(n instanceof SVGElement) && n.tagName !== 'OPTION')
    .filter((n) => !n.closest('.pair.equal, .unseen, :disabled'))
    .filter((n) => [...n.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
    .map((n) => [ratio(n), n.className, n.textContent.slice(0, 30)])
    .filter(([found]) => found < 4.5);
}"""
"""Texts with less contrast than WCAG AA asks for: 4.5."""
