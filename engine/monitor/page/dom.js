// Elements, made and changed without ever reading text as HTML.
const svgNames = new Set(["svg", "rect", "path", "line", "title", "g"]);

export function element(name, attributes = {}, ...children) {
  const node = svgNames.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export const by = (id) => document.getElementById(id);

// Text is only written where it changes, so that screen readers and selections are left alone.
export function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

// facts fills a <dl> with [name, value, mark] lines.
export function facts(list, lines) {
  const want = JSON.stringify(lines);
  if (list.dataset.lines === want) return;
  list.dataset.lines = want;
  list.replaceChildren(...lines.map(([name, value, mark]) => {
    const term = element("dt", {}, name);
    if (mark) term.dataset.mark = mark;
    return element("div", {}, term, element("dd", {}, value));
  }));
}

// keyed keeps one child of parent for each item, in order, made once and updated after. Focus stays where it is.
export function keyed(parent, items, make, update) {
  const had = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let at = parent.firstElementChild;
  for (const item of items) {
    let node = had.get(item.id);
    had.delete(item.id);
    if (!node) {
      node = make(item);
      node.dataset.key = item.id;
    }
    update(node, item);
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
  }
  for (const node of had.values()) node.remove();
}
