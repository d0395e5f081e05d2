/* Code, tables and formulas that are wider than the page: Tab reaches them, so that the arrow keys can scroll them. Others are passed over.
   The theme's two side columns get names, and empty cells in the head of a table, which name no column, are ordinary cells. */
(() => {
  const mark = (part) => (part.scrollWidth > part.clientWidth ? part.setAttribute("tabindex", "0") : part.removeAttribute("tabindex"));
  const sizes = new ResizeObserver((seen) => seen.forEach((one) => mark(one.target)));
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".highlight pre, .table-wrapper, div.math").forEach((part) => {
      mark(part);
      sizes.observe(part);
    });
    document.querySelector("aside.sidebar-drawer")?.setAttribute("aria-label", "All pages");
    document.querySelector("aside.toc-drawer")?.setAttribute("aria-label", "This page");
    document.querySelectorAll("th").forEach((cell) => cell.textContent.trim() || cell.replaceWith(document.createElement("td")));
  });
})();
