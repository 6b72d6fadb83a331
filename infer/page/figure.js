// A figure: title, a sentence that says how to read it, charts that are drawn anew when what they show
// changes, and a button that saves them as one SVG file.

const SVG = "http://www.w3.org/2000/svg";
/** What text is set in; Arial's widths where a system has no better. */
export const font =
  "-apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', system-ui, sans-serif";

const kRim = 10; // of a saved figure

/** An element with attributes and children; attributes that are functions listen for events. */
export function html(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** A name with its explanation, where it has one, as the mouse and screen readers find it. */
export const explained = (name, meaning) => (meaning ? html("abbr", {title: meaning}, name) : name);

/** The value of a CSS variable like "--ink", as the page shows it now. */
export function cssValue(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Whose what follows is, where there are two runs or tables. */
export const prefix = (all, {label}) => (all.length > 1 ? `${label}: ` : "");

/** What stands in place of charts where there are reasons for it, one element or none. */
export function missing(reasons) {
  return reasons.length > 0 ? [html("p", {class: "missing"}, `Not shown: ${reasons.join("; ")}.`)] : [];
}

/** The width of one of several charts that lie beside each other where there is room. */
export const half = ({length}, width) => (length > 1 && width > 560 ? (width - 24) / 2 : width);

/** How wide a text of 12 pixels is. */
export const textWidth = (() => {
  const context = document.createElement("canvas").getContext("2d");
  return (text) => {
    context.font = `12px ${font}`;
    return context.measureText(text).width;
  };
})();

/**
 * `keys` are those of the view that the charts depend on; `draw(view, width)` returns elements.
 * `refresh(view)` is for what can follow other keys without drawing anew. A `wide` figure takes a row,
 * a `half` one shares it where there is only one run. Charts of a `beside` figure lie beside each other.
 */
export class Figure {
  constructor({id, title, hint, keys = [], draw, refresh, wide, half, beside}) {
    Object.assign(this, {id, title, keys, draw, refresh});
    this.body = html("div", {class: "body"});
    this.saveButton = html(
      "button",
      {type: "button", class: "save", click: () => this.save(), "aria-label": `Save “${title}” as SVG`},
      "Save as SVG",
    );
    this.element = html(
      "figure",
      {
        id,
        class: [wide && "wide", half && "half", beside && "beside"].filter(Boolean).join(" "),
        "aria-labelledby": `${id}-title`,
      },
      html("figcaption", {}, html("h3", {id: `${id}-title`}, title), html("p", {class: "hint"}, hint)),
      this.body,
      this.saveButton,
    );
  }

  /**
   * `changed`: the keys that changed; undefined means everything. Without charts it hides. As wide as
   * before: to ask all figures for their width on the way would take longer than to draw them.
   */
  update(view, changed) {
    this.view = view;
    if (!changed || changed.some((key) => this.keys.includes(key))) {
      this.element.hidden = false;
      this.width ||= this.body.clientWidth;
      if (this.width === 0) return; // without a place yet: fit() draws it
      this.body.replaceChildren(...this.draw(view, this.width));
      this.saveButton.hidden = this.body.querySelector("svg") === null;
      this.element.hidden = this.body.childElementCount === 0;
    }
    this.refresh?.(view);
  }

  /** Draws anew where there is more room now, or less. */
  fit() {
    const width = this.body.clientWidth;
    if (!this.view || this.element.hidden || width === this.width) return;
    this.width = width;
    this.update(this.view);
  }

  save() {
    const file = new Blob(
      [
        inLight(
          () => this.update(this.view),
          () => this.toSvg(),
        ),
      ],
      {type: "image/svg+xml"},
    );
    const url = URL.createObjectURL(file);
    html("a", {href: url, download: `phasor-${this.id}.svg`}).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  }

  /** All charts of the figure as they lie beside each other, in one document. */
  toSvg() {
    const frame = this.body.getBoundingClientRect();
    let width = 0,
      height = 0;
    const charts = [...this.body.querySelectorAll("svg")].map((chart) => {
      const {x, y, right, bottom} = chart.getBoundingClientRect();
      width = Math.max(width, right - frame.x + 2 * kRim);
      height = Math.max(height, bottom - frame.y + 2 * kRim);
      const group = svg("g", {transform: `translate(${x - frame.x} ${y - frame.y})`});
      for (const {name, value} of chart.attributes) {
        if (/^(fill|font-|text-anchor)/.test(name)) group.setAttribute(name, value);
      }
      group.append(
        ...[...chart.childNodes]
          .filter((node) => node.nodeName !== "style")
          .map((node) => node.cloneNode(true)),
      );
      return group;
    });
    const document = svg(
      "svg",
      {
        xmlns: SVG,
        viewBox: `${-kRim} ${-kRim} ${width} ${height}`,
        width,
        height,
        color: cssValue("--ink"),
        style: `font-family: ${font}; white-space: pre`,
      },
      svg("title", {}, this.title),
      svg("rect", {x: -kRim, y: -kRim, width, height, fill: cssValue("--surface")}),
      charts,
    );
    for (const element of document.querySelectorAll("[data-screen]")) element.remove();
    return new XMLSerializer()
      .serializeToString(document)
      .replace(/var\((--[a-z0-9-]+)\)/g, (_, name) => cssValue(name));
  }
}

/** Draws in the light colours, which print as well, asks for something, and draws as it was. */
export function inLight(draw, ask) {
  document.documentElement.dataset.theme = "light";
  draw();
  const answer = ask();
  delete document.documentElement.dataset.theme;
  draw();
  return answer;
}

/** A place that is filled later. */
export const part = (name) => html("div", {class: name});

export function section(title, ...children) {
  return html("section", {}, html("h2", {}, title), children);
}

/** The elements of a page, with links to its sections below its beginning. The address stays as it is. */
export function contents([beginning, ...elements]) {
  const links = elements
    .filter(({nodeName}) => nodeName === "SECTION")
    .map((to) => {
      const name = to.firstChild.textContent;
      to.id = `section-${name.toLowerCase().replaceAll(" ", "-")}`;
      const go = (event) => {
        event.preventDefault();
        to.scrollIntoView({behavior: "instant"});
      };
      return html("a", {href: `#${to.id}`, click: go}, name);
    });
  return [beginning, html("nav", {class: "contents", "aria-label": "Contents"}, links), ...elements];
}

export function figures(all, ...classes) {
  return html(
    "div",
    {class: ["figures", ...classes].join(" ")},
    all.map(({element}) => element),
  );
}
