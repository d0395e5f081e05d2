// Shows the progress of a preparation. Without this script the browser sends the form and waits until the preparation is done.
(function () {
  "use strict";
  var form = document.getElementById("preparing");
  if (!form || !window.fetch || !window.ReadableStream) return;
  var shown = form.querySelector(".progress");
  var bar = shown.querySelector("progress");
  var words = shown.querySelector("[role=status]");
  var button = form.querySelector("button[type=submit]");

  function told(name, fields) {
    if (name === "progress") {
      bar.max = Math.max(fields.total, 1);
      bar.value = fields.done;
      words.textContent = fields.what + ", " + fields.done + " of " + fields.total;
    } else if (name === "done") {
      bar.value = bar.max;
      words.textContent = "Version " + fields.version + " is prepared.";
      window.location.assign(form.dataset.done);
    } else if (name === "problem" && fields.code === "rows-lost") {
      window.location.assign(form.dataset.done); // the page shows what would be lost
    } else if (name === "problem") {
      words.textContent = fields.title + (fields.hint ? " (" + fields.hint + ")" : "");
      words.classList.add("bad");
      button.disabled = false;
    }
  }

  function read(text) {
    text.split("\n\n").forEach(function (event) {
      var name = /^event: (.*)$/m.exec(event);
      var data = /^data: (.*)$/m.exec(event);
      if (name && data) told(name[1], JSON.parse(data[1]));
    });
  }

  form.addEventListener("submit", function (event) {
    event.preventDefault();
    button.disabled = true;
    shown.hidden = false;
    words.classList.remove("bad");
    words.textContent = "Reading the sources.";
    fetch(form.action, {
      method: "POST",
      body: new URLSearchParams(new FormData(form)),
      headers: { Accept: "text/event-stream", "X-Fragment": "yes" },
      credentials: "same-origin",
    })
      .then(function (reply) {
        if (!reply.ok || !reply.body) throw new Error("refused");
        var reader = reply.body.getReader();
        var decoder = new TextDecoder();
        var rest = "";
        function next() {
          return reader.read().then(function (piece) {
            rest += decoder.decode(piece.value || new Uint8Array(), { stream: !piece.done });
            var end = rest.lastIndexOf("\n\n");
            if (end >= 0) {
              read(rest.slice(0, end));
              rest = rest.slice(end + 2);
            }
            return piece.done ? read(rest) : next();
          });
        }
        return next();
      })
      .catch(function () {
        words.textContent = "The connection was lost or the server refused. Load the page again: the preparation may have continued.";
        words.classList.add("bad");
        button.disabled = false;
      });
  });
})();
