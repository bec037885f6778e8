// Elements of the page. Text from the log is never markup.

export const byId = id => document.getElementById(id);

/** @param {object} properties of the element; those it does not have become attributes. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child != null));
  return made;
}

/** A table with a caption for who cannot see it. `heads` are texts; those that end in ">" are columns of numbers. */
export function table(caption, heads, rows, className = "") {
  const head = element("tr", {}, ...heads.map(text => {
    const isNumber = text.endsWith(">");
    return element("th", { scope: "col", className: isNumber ? "n" : "" }, isNumber ? text.slice(0, -1) : text);
  }));
  return element("table", { className }, element("caption", {}, caption),
    heads.length ? element("thead", {}, head) : null, element("tbody", {}, ...rows));
}

/** A cell; `sub` is a second line in small print. */
export function cell(content, sub = null, className = "") {
  return element("td", { className }, ...[content].flat(), sub == null ? null : element("div", { className: "sub" }, sub));
}

export const number = (content, sub = null, className = "") => cell(content, sub, `n ${className}`);
