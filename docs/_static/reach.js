/* Code, tables and formulas that are wider than the page: Tab reaches them, so that the arrow keys can scroll them. Others are passed over. */
(() => {
  const mark = (part) => (part.scrollWidth > part.clientWidth ? part.setAttribute("tabindex", "0") : part.removeAttribute("tabindex"));
  const sizes = new ResizeObserver((seen) => seen.forEach((one) => mark(one.target)));
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".highlight pre, .table-wrapper, div.math").forEach((part) => {
      mark(part);
      sizes.observe(part);
    });
  });
})();
