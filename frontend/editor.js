// The editor of the console: CodeMirror over the text area of the form, the price while one types, and two sliders. Without this script the
// form works as it is. What is shown comes from the server as HTML that is escaped there; nothing here makes markup from text.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { PostgreSQL, sql, SQLDialect } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const QUIET_MILLISECONDS = 250; // a text is priced when it has been left alone for so long, and so at most four times a second
const CLOSE_ENOUGH = 0.02; // how far off the error may be that the slider asked for
const STEPS_MAX = 4;

const form = document.getElementById("ask");
const area = document.getElementById("sql");
const panel = document.getElementById("price");
const epsilon = document.getElementById("epsilon");
const epsilonSlider = document.getElementById("epsilon-slider");
const errorSlider = document.getElementById("error-slider");
const errorValue = document.getElementById("error-value");

// -- the place of a refusal ------------------------------------------------------------------------------------------------------------

const markPlace = StateEffect.define();
const place = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    marks = marks.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(markPlace)) {
        const { from, to } = effect.value;
        marks = from < to ? Decoration.set([Decoration.mark({ class: "refused-place" }).range(from, to)]) : Decoration.none;
      }
    }
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

// -- the editor ------------------------------------------------------------------------------------------------------------------------

const style = HighlightStyle.define([
  { tag: [tags.keyword, tags.typeName, tags.standard(tags.name)], class: "token-keyword" },
  { tag: [tags.string, tags.special(tags.string)], class: "token-text" },
  { tag: [tags.number, tags.bool, tags.null], class: "token-number" },
  { tag: tags.comment, class: "token-comment" },
]);

// Signs are PostgreSQL's; words are those that Lapwing knows, and no others are offered.
const dialect = SQLDialect.define({ ...PostgreSQL.spec, ...JSON.parse(form.dataset.words) });

const view = new EditorView({
  parent: document.getElementById("editor"),
  state: EditorState.create({
    doc: area.value,
    extensions: [
      EditorView.cspNonce.of(form.dataset.nonce),
      EditorView.contentAttributes.of({ "aria-labelledby": "sql-label", "data-editor": "" }),
      EditorView.lineWrapping,
      lineNumbers(),
      history(),
      drawSelection(),
      bracketMatching(),
      closeBrackets(),
      autocompletion({ icons: false }),
      sql({ dialect, schema: JSON.parse(form.dataset.schema), upperCaseKeywords: true }),
      syntaxHighlighting(style),
      placeholder(area.placeholder),
      place,
      keymap.of([
        { key: "Mod-Enter", run: () => (pay(), true) },
        ...closeBracketsKeymap,
        ...completionKeymap,
        ...historyKeymap,
        ...defaultKeymap,
      ]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) {
          area.value = view.state.doc.toString();
          changed();
        }
      }),
    ],
  }),
});
area.hidden = true;
document.getElementById("sql-label").removeAttribute("for");
document.documentElement.classList.add("has-script");
for (const element of document.querySelectorAll(".scripted")) element.hidden = false;

function setText(text) {
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: text.length } });
  view.focus();
}

// -- the price -------------------------------------------------------------------------------------------------------------------------

let timer = 0;
let running = null;
let wantedHalf = null; // what the slider of errors asks for
let steps = 0;

function changed(keepWanted = false) {
  if (!keepWanted) wantedHalf = null;
  // A price on the screen is always of the text on the screen: until there is one, there is nothing to press.
  panel.setAttribute("aria-busy", "true");
  for (const button of panel.querySelectorAll("button[type=submit]")) button.disabled = true;
  running?.abort(); // what is under way is of another text
  clearTimeout(timer);
  timer = setTimeout(look, QUIET_MILLISECONDS);
}

async function look() {
  const mine = (running = new AbortController());
  const fields = new URLSearchParams(new FormData(form));
  try {
    const reply = await fetch(form.dataset.price, { method: "POST", body: fields, headers: { "X-Fragment": "1" }, signal: mine.signal });
    const html = await reply.text();
    if (mine.signal.aborted) return;
    panel.innerHTML = html;
    panel.removeAttribute("aria-busy");
    shown();
  } catch (error) {
    if (error.name === "AbortError") return;
    panel.textContent = "The server cannot be reached. Nothing was spent.";
    panel.removeAttribute("aria-busy");
  }
}

function shown() {
  const span = panel.querySelector(".refused")?.dataset.span;
  const [from, to] = span ? span.split(" ").map(Number) : [0, 0];
  const length = view.state.doc.length;
  view.dispatch({ effects: markPlace.of({ from: Math.min(from, length), to: Math.min(to, length) }) });
  for (const link of panel.querySelectorAll("a[data-sql]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      setText(link.dataset.sql);
    });
  }
  balance();
}

function pay() {
  const button = panel.querySelector("button[type=submit]");
  if (button && !button.disabled) form.requestSubmit(button);
}

form.addEventListener("submit", () => panel.setAttribute("aria-busy", "true"));

// -- price and error, each by the other ------------------------------------------------------------------------------------------------

const least = Number(epsilonSlider.min);
const most = Math.min(1, Math.log10(Math.max(Number(form.dataset.most), 0.002)));
epsilonSlider.max = String(most);

function words(number) {
  return number >= 100 ? Math.round(number).toLocaleString("en") : String(Number(number.toPrecision(2)));
}

function balance() {
  const priced = panel.querySelector(".priced");
  const half = Number(priced?.dataset.half);
  const now = Number(priced?.dataset.epsilon);
  errorSlider.disabled = !(half > 0 && now > 0);
  if (!priced) return;
  if (wantedHalf !== null && half > 0 && Math.abs(half / wantedHalf - 1) > CLOSE_ENOUGH && steps < STEPS_MAX) {
    steps += 1;
    setEpsilon((now * half) / wantedHalf, true);
    return;
  }
  wantedHalf = null;
  if (now > 0) epsilonSlider.value = String(Math.log10(now));
  if (half > 0) {
    // Errors go down as prices go up: the slider is the other one, turned round, around what is known now.
    errorSlider.dataset.product = String(half * now);
    errorSlider.value = String((most - Math.log10(now)) / (most - least));
    errorValue.textContent = `±${words(half)}`;
  } else {
    errorValue.textContent = "";
  }
}

function setEpsilon(value, keepWanted = false) {
  const bounded = Math.min(Math.max(value, 10 ** least), 10 ** most);
  epsilon.value = String(Number(bounded.toPrecision(3)));
  changed(keepWanted);
}

epsilon.addEventListener("input", () => changed());
epsilonSlider.addEventListener("input", () => setEpsilon(10 ** Number(epsilonSlider.value)));
errorSlider.addEventListener("input", () => {
  const guess = 10 ** (most - Number(errorSlider.value) * (most - least));
  wantedHalf = Number(errorSlider.dataset.product) / guess;
  errorValue.textContent = `±${words(wantedHalf)}`;
  steps = 0;
  setEpsilon(guess, true);
});

for (const name of document.querySelectorAll(".schema code")) {
  name.addEventListener("dblclick", () => view.dispatch(view.state.replaceSelection(name.textContent)));
}

shown();
if (area.value && !panel.querySelector(".priced, .refused")) changed();
view.focus();
