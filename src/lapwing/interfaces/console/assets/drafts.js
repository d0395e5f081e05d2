// Keeps the text in the editor across Back, reload and signing in again: only in the memory of this tab, for each person and data set.
// Closing the tab or signing out in it deletes the draft. It runs before the editor, which starts with the text in the form.
(function () {
  "use strict";
  var PREFIX = "lapwing draft ";
  var mine = PREFIX + JSON.stringify([document.body.dataset.who]).slice(0, -1);
  var kept = window.sessionStorage;
  var form = document.getElementById("ask");
  var isOver = false;

  function forget(isForgotten) {
    Object.keys(kept).filter((key) => key.startsWith(PREFIX) && isForgotten(key)).forEach((key) => kept.removeItem(key));
  }

  forget((key) => !key.startsWith(mine + ",")); // drafts of the person who used this tab before
  document.querySelector("form.leave").addEventListener("submit", function () {
    isOver = true;
    forget(() => true);
  });
  if (!form) return;

  var name = mine + "," + JSON.stringify(form.getAttribute("action")) + "]";
  var area = document.getElementById("sql");
  var epsilon = document.getElementById("epsilon");
  var sent = area.defaultValue; // the statement in the address

  function keep() {
    if (isOver) return;
    if (area.value.trim()) kept.setItem(name, JSON.stringify({ of: sent, sql: area.value, epsilon: epsilon.value }));
    else kept.removeItem(name);
  }

  var draft = JSON.parse(kept.getItem(name) || "null");
  if (draft && (!sent || draft.of === sent) && draft.sql !== sent) {
    area.value = draft.sql;
    epsilon.value = draft.epsilon;
    document.getElementById("price").textContent = ""; // it was the price of another text; the editor requests the new one
  }
  form.addEventListener("input", () => setTimeout(keep)); // after the editor has put its text into the form
  form.addEventListener("submit", keep);
  window.addEventListener("pagehide", keep);
})();
