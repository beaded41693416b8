// Sorting and filtering of tables. Without this script a report is complete, only its rows stay as they are.
"use strict";

for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => makeSortable(heads, head, body, column, table.id));
  addFilter(table, body);
  const [column, order] = (Address.get(`${table.id}.sort`) || "").split(",");
  if (heads[column]) sortBy(heads, heads[column], body, Number(column), order);
}

function makeSortable(heads, head, body, column, name) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const numeric = head.classList.contains("number");
    const before = head.getAttribute("aria-sort");
    // numbers are looked at from the largest, names from A
    const order = before ? (before === "ascending" ? "descending" : "ascending") : numeric ? "descending" : "ascending";
    sortBy(heads, head, body, column, order);
    Address.set(`${name}.sort`, `${column},${order}`);
  });
}

function sortBy(heads, head, body, column, order) {
  for (const other of heads) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order === "ascending" ? order : "descending");
  sortRows(body, column, head.classList.contains("number"), order === "ascending" ? 1 : -1);
}

function sortRows(body, column, numeric, sign) {
  const keyed = rowsOf(body).map((row) => ({ row, key: keyOf(row.cells[column], numeric) }));
  keyed.sort((a, b) => {
    // what is not known goes last in both directions
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
    return sign * (numeric ? a.key - b.key : a.key.localeCompare(b.key, "en", { numeric: true }));
  });
  body.append(...keyed.flatMap(({ row }) => (row.details ? [row, row.details] : [row])));
}

// without the details that stand below an opened row, and go where it goes
function rowsOf(body) {
  return Array.from(body.rows).filter((row) => !row.classList.contains("details"));
}

function keyOf(cell, numeric) {
  if (!numeric) return cell.textContent;
  return cell.dataset.sort === undefined ? null : Number(cell.dataset.sort);
}

function addFilter(table, body) {
  const rows = Array.from(body.rows);
  if (rows.length < 8) return;
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const label = document.createElement("label");
  const input = document.createElement("input");
  const shown = document.createElement("output");
  input.type = "search";
  input.autocomplete = "off";
  input.placeholder = "text in any column";
  label.className = "filter";
  label.append("Show only rows with ", input, shown);
  const filter = () => {
    const wanted = input.value.trim().toLowerCase();
    let count = 0;
    rows.forEach((row, index) => {
      row.hidden = !texts[index].includes(wanted);
      row.classList.toggle("filtered", row.hidden);
      count += row.hidden ? 0 : 1;
    });
    shown.textContent = wanted ? ` ${count} of ${rows.length}` : "";
    Address.set(`${table.id}.filter`, wanted);
  };
  input.addEventListener("input", filter);
  input.value = Address.get(`${table.id}.filter`) || "";
  if (input.value) filter();
  table.closest(".scroll").before(label);
}

// a link to a row that the filter hides would lead nowhere
addEventListener("hashchange", () => {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (target && target.hidden) {
    target.hidden = false;
    target.scrollIntoView();
  }
});
