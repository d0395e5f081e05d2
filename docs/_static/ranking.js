/* How results of the search are ordered: pages that explain come before lists of modules and records of decisions, and a title before text. */
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 30,
  partialTitle: 14,
  term: 5,
  partialTerm: 2,
  rooms: { tutorials: 6, "how-to": 8, explanation: 6, reference: 4, proofs: 0, decisions: -8 },
  score: function (result) {
    var page = result[0] || "";
    var score = result[4];
    var room = Scorer.rooms[page.split("/")[0]];
    if (room !== undefined) score += room;
    if (page.indexOf("reference/api/") === 0 || page.indexOf("reference/generated/") === 0 || page.indexOf("_autosummary") >= 0) score -= 14;
    if (page === "reference/words" && result[2]) score += 6;
    return score;
  },
};
