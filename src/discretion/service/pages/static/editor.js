// The SQL editor: colours under a textarea, completion of names, and a mark where a question is wrong.
"use strict";

const KEYWORDS = new Set(("select from where group by order having limit offset and or not in between is null as case when then " +
  "else end join left inner on using distinct with union all true false like cast filter within asc desc over interval date " +
  "timestamp exists").split(" "));
const TOKENS = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b)|([A-Za-z_][A-Za-z_0-9]*)/gi;

class Editor {
  constructor(frame) {
    this.frame = frame;
    this.area = frame.querySelector("textarea");
    this.words = JSON.parse(frame.dataset.words);
    this.place = null; // where the question is wrong: {line, column}
    this.under = document.createElement("pre");
    this.under.className = "under";
    this.under.setAttribute("aria-hidden", "true");
    frame.prepend(this.under);
    frame.classList.add("ready");
    this.offered = [];
    this.list = document.createElement("ul");
    this.list.className = "completion";
    this.list.id = "completion";
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Names and words");
    this.list.hidden = true;
    frame.append(this.list);
    this.area.setAttribute("aria-controls", "completion");
    this.area.setAttribute("aria-autocomplete", "list");
    this.area.addEventListener("input", () => { this.place = null; this.colour(); this.offer(false); });
    this.area.addEventListener("scroll", () => { this.under.scrollTop = this.area.scrollTop; });
    this.area.addEventListener("keydown", (event) => this.press(event));
    this.area.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    this.list.addEventListener("mousedown", (event) => {
      const item = event.target.closest("li");
      if (item) { event.preventDefault(); this.take([...this.list.children].indexOf(item)); }
    });
    this.colour();
  }

  colour() {
    const text = this.area.value, marked = this.marked(text), parts = [];
    let done = 0;
    const plain = (from, to) => { if (to > from) parts.push(document.createTextNode(text.slice(from, to))); };
    const span = (from, to, name) => {
      const made = document.createElement("span");
      made.className = name;
      made.textContent = text.slice(from, to);
      parts.push(made);
    };
    for (const found of text.matchAll(TOKENS)) {
      const from = found.index, to = from + found[0].length;
      const kind = found[1] ? "remark" : found[2] ? "text-literal" : found[4] ? "figure-literal"
        : found[5] && KEYWORDS.has(found[5].toLowerCase()) ? "word" : "";
      const wrong = marked !== null && marked >= from && marked < to ? " mark" : "";
      if (!kind && !wrong) continue;
      plain(done, from);
      span(from, to, kind + wrong);
      done = to;
    }
    plain(done, text.length);
    parts.push(document.createTextNode("\n"));
    this.under.replaceChildren(...parts);
    this.under.scrollTop = this.area.scrollTop;
  }

  marked(text) {
    if (!this.place) return null;
    const lines = text.split("\n");
    let place = this.place.column - 1;
    for (let line = 0; line < this.place.line - 1 && line < lines.length; line++) place += lines[line].length + 1;
    return place;
  }

  mark(line, column) {
    this.place = line && column ? { line: Number(line), column: Number(column) } : null;
    this.colour();
  }

  begun() {
    const before = this.area.value.slice(0, this.area.selectionStart);
    return (before.match(/[A-Za-z_][A-Za-z_0-9]*$/) || [""])[0];
  }

  offer(always) {
    const begun = this.begun();
    if (!always && begun.length < 2) return this.close();
    const low = begun.toLowerCase();
    this.offered = this.words.filter(([word]) => word.toLowerCase().startsWith(low) && word.toLowerCase() !== low).slice(0, 40);
    if (!this.offered.length) return this.close();
    this.list.replaceChildren(...this.offered.map(([word, kind], place) => {
      const item = document.createElement("li"), name = document.createElement("span"), what = document.createElement("small");
      item.setAttribute("role", "option");
      item.id = `completion-${place}`;
      name.textContent = word;
      what.textContent = kind;
      item.append(name, what);
      return item;
    }));
    this.list.hidden = false;
    this.point(0);
    const lines = this.area.value.slice(0, this.area.selectionStart).split("\n").length;
    const height = parseFloat(getComputedStyle(this.area).lineHeight);
    this.list.className = "completion";
    this.drop = Math.min(this.area.clientHeight, lines * height + 14 - this.area.scrollTop);
    this.list.style.setProperty("top", `${this.drop}px`);
  }

  point(place) {
    this.at = (place + this.offered.length) % this.offered.length;
    [...this.list.children].forEach((item, other) => item.setAttribute("aria-selected", String(other === this.at)));
    this.list.children[this.at].scrollIntoView({ block: "nearest" });
    this.area.setAttribute("aria-activedescendant", `completion-${this.at}`);
  }

  close() {
    this.list.hidden = true;
    this.area.removeAttribute("aria-activedescendant");
  }

  take(place) {
    const [word, kind] = this.offered[place], end = this.area.selectionStart, start = end - this.begun().length;
    const name = kind && !/^[a-z_][a-z_0-9]*$/i.test(word) ? `"${word.replaceAll('"', '""')}"` : word;
    this.area.setRangeText(name, start, end, "end");
    this.close();
    this.area.dispatchEvent(new Event("input", { bubbles: true }));
    this.close();
  }

  press(event) {
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); this.offer(true); return; }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.area.dispatchEvent(new Event("change", { bubbles: true }));
      return;
    }
    if (this.list.hidden) return;
    if (event.key === "ArrowDown") { event.preventDefault(); this.point(this.at + 1); }
    else if (event.key === "ArrowUp") { event.preventDefault(); this.point(this.at - 1); }
    else if (event.key === "Enter" || event.key === "Tab") { event.preventDefault(); this.take(this.at); }
    else if (event.key === "Escape") { event.preventDefault(); this.close(); }
  }
}

document.addEventListener("DOMContentLoaded", () => {
  const frame = document.querySelector(".editor");
  if (!frame) return;
  const editor = new Editor(frame), outlook = document.getElementById("outlook");
  const marks = () => {
    const wrong = outlook.querySelector("[data-line]");
    editor.mark(wrong && wrong.dataset.line, wrong && wrong.dataset.column);
  };
  marks();
  document.body.addEventListener("htmx:afterSwap", marks);
});
