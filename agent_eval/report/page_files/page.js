"use strict";
// Shows the details of a trial and filters the list. Everything from evidence is put into
// text nodes and attributes by name; no markup is ever parsed here.
(() => {
  const overview = document.getElementById("overview");
  const article = document.getElementById("trial");
  if (!overview) return; // a directory without trials, such as a comparison
  const blocks = [...document.querySelectorAll("script.t")];
  const rows = [...document.querySelectorAll("#trials table.list tbody tr")];
  const entries = rows.map((row, index) => {
    const link = row.querySelector("a");
    const name = link.textContent;
    return {
      row, index, name,
      caseId: name.slice(0, name.lastIndexOf("/")),
      verdict: row.cells[1].textContent.replace(/^\S+ /, ""),
      text: row.textContent.toLowerCase(),
      deep: null,
    };
  });
  const byName = new Map(entries.map((entry) => [entry.name, entry]));
  const pageTitle = document.title;
  let shown = entries;
  let returnTo = null;

  function el(name, attributes, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return node;
  }

  function svg(name, attributes, ...children) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }

  function table(headings, body, kind) {
    if (!body.length) return null;
    const head = el("thead", {}, el("tr", {}, ...headings.map((heading) => el("th", { scope: "col" }, heading))));
    const lines = body.map((cells) =>
      el("tr", {}, ...cells.map((cell, index) => el("td", { "data-label": headings[index] }, cell))));
    return el("div", { class: "scroll" }, el("table", { class: kind || null }, head, el("tbody", {}, ...lines)));
  }

  function part(title, ...content) {
    const body = content.filter(Boolean);
    return body.length ? el("section", {}, el("h3", {}, title), ...body) : null;
  }

  function bytes(count) {
    return count === 1 ? "1 byte" : `${count.toLocaleString("en-US")} bytes`;
  }

  function excerpt(data) {
    const kind = data.form === "hex" ? "hex" : null;
    const cut = data.omitted
      ? el("p", { class: "cut" }, `${bytes(data.omitted)} of ${bytes(data.bytes)} are left out here; all of it is in the file.`)
      : null;
    return [
      el("pre", { class: kind, tabindex: "0" }, data.head), cut,
      data.omitted ? el("pre", { class: kind, tabindex: "0" }, data.tail) : null,
    ].filter(Boolean);
  }

  function diff(lines) {
    const kinds = { "+": "add", "-": "del", "@": "at" };
    return el("pre", { tabindex: "0" }, ...lines.map((line) => el("span", { class: kinds[line[0]] || "ctx" }, line)));
  }

  function badge(verdict) {
    const marks = { pass: "✓", fail: "✗", void: "○", interrupted: "◌" };
    return el("span", { class: `badge ${verdict}` }, `${marks[verdict] || ""} ${verdict}`);
  }

  function reasons(data) {
    const parts = data.failures.map((failure) =>
      el("div", { class: data.verdict === "fail" ? "reason" : "reason softly" },
        el("p", {}, el("b", {}, failure.reason), failure.detail ? `: ${failure.detail}` : ""),
        ...failure.evidence.map(([pointer, value]) =>
          el("p", { class: "cite" }, "rests on ", el("code", {}, pointer), value ? " = " : "", value ? el("code", {}, value) : ""))));
    if (!parts.length && data.cause) parts.push(el("div", { class: "reason softly" }, el("p", {}, el("b", {}, data.cause))));
    return parts;
  }

  function gauges(data) {
    return table(["limit", "used", "measured"], data.gauges.map(([name, share, words]) => {
      const bar = svg("svg", { viewBox: "0 0 200 8", class: share >= 1 ? "gauge reached" : "gauge", preserveAspectRatio: "none", role: "img", "aria-label": words },
        svg("rect", { width: 200, height: 8, rx: 4, class: "track" }),
        svg("rect", { width: Math.max(0, Math.min(1, share)) * 200, height: 8, rx: 4, class: "fill" }));
      return [name, bar, words];
    }));
  }

  function timeline(data) {
    const line = data.timeline;
    if (line.wall_s === null) return null;
    const reached = line.limit_s && line.limit_s <= line.wall_s * 1.5;
    const end = Math.max(line.wall_s, reached ? line.limit_s : 0, ...line.marks.map((mark) => mark[0]), 0.001);
    line.marks.forEach((mark) => { mark[0] = Math.max(0, mark[0]); });
    const width = 900, left = 10, base = 34;
    const x = (at) => left + (at / end) * (width - 2 * left);
    const parts = [
      svg("line", { x1: left, x2: width - left, y1: base, y2: base, class: "base" }),
      svg("rect", { x: x(0), y: base - 7, width: Math.max(1, x(line.wall_s) - x(0)), height: 14, rx: 3, class: "span" }),
    ];
    if (reached) {
      parts.push(svg("line", { x1: x(line.limit_s), x2: x(line.limit_s), y1: 14, y2: base + 12, class: "limit" }));
      parts.push(svg("text", { x: x(line.limit_s), y: 11, "text-anchor": anchor(line.limit_s / end) }, `limit ${line.limit_s} s`));
    }
    // Labels that would overlap go to the next row.
    const ends = [];
    for (const [at, kind, label] of line.marks) {
      const words = `${at.toFixed(2)} s ${label}`, length = words.length * 7, where = anchor(at / end);
      const start = x(at) - (where === "end" ? length : where === "middle" ? length / 2 : 0);
      let row = ends.findIndex((taken) => taken + 8 < start);
      if (row < 0) row = ends.length;
      if (row < 8) {
        ends[row] = start + length;
        parts.push(svg("text", { x: x(at), y: base + 26 + row * 16, "text-anchor": where }, words));
      }
      parts.push(svg("line", { x1: x(at), x2: x(at), y1: base - 10, y2: base + 12, class: kind === "signal" ? "signal" : "mark" }));
    }
    const height = base + 24 + Math.min(8, Math.max(1, ends.length)) * 16;
    const words = line.marks.map(([at, , label]) => `${label} at ${at.toFixed(2)} s`).join(", ");
    parts.push(svg("text", { x: left, y: 11, class: "soft" }, `0 to ${end.toFixed(2)} s`));
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "timeline", role: "img", "aria-label": `Ran ${line.wall_s} s. ${words}` }, ...parts);
  }

  function anchor(share) {
    return share < 0.15 ? "start" : share > 0.85 ? "end" : "middle";
  }

  function workspace(data) {
    const space = data.workspace;
    if (!space) return null;
    const counts = ["added", "changed", "removed"].map((kind) => `${space.counts[kind]} ${kind}`).join(", ");
    const files = space.rows.map((row) => {
      const title = [el("b", {}, row.kind), " ", el("code", {}, row.path), ` (${row.what})`];
      const content = [
        row.diff && row.diff.length ? diff(row.diff) : null,
        row.note ? el("p", { class: "cut" }, row.note) : null,
        ...(row.new ? excerpt(row.new) : []),
      ].filter(Boolean);
      return content.length ? el("details", { open: data.verdict !== "pass" || null }, el("summary", {}, ...title), ...content) : el("p", {}, ...title);
    });
    return part("Workspace", el("p", {}, counts), space.limit ? el("p", { class: "cut" }, `The walk stopped at a limit: ${space.limit}.`) : null,
      ...files, more(space.rows.length, space.total, "changes"));
  }

  function more(count, total, what) {
    return total > count ? el("p", { class: "cut" }, `${total - count} more ${what} are in the evidence.`) : null;
  }

  function listing(title, headings, found, kind) {
    if (!found || !found.total) return null;
    return part(title, found.note ? el("p", { class: "note" }, found.note) : null, table(headings, found.rows, kind), more(found.rows.length, found.total, "rows"));
  }

  function outputs(data) {
    return data.outputs.map((output) =>
      part(output.path, el("p", { class: "note" }, `${bytes(output.bytes)}${output.form === "hex" ? ", not text" : ""} · `, el("code", {}, output.full)),
        output.note ? el("p", { class: "cut" }, output.note) : null, ...(output.form === "empty" ? [] : excerpt(output))));
  }

  function render(entry) {
    const data = JSON.parse(blocks[entry.index].textContent);
    const position = shown.indexOf(entry);
    const step = (offset, label) => {
      const target = position < 0 ? null : shown[position + offset];
      const button = el("button", { type: "button", disabled: !target }, label);
      if (target) button.addEventListener("click", () => open(target));
      return button;
    };
    const back = el("button", { type: "button" }, "Back to all trials");
    back.addEventListener("click", close);
    if (data.bare) {
      article.replaceChildren(
        el("div", { class: "bar" }, back, step(-1, "Previous"), step(1, "Next")),
        el("h2", { tabindex: "-1" }, entry.name, " ", badge(entry.verdict)), el("p", { class: "cut" }, data.bare));
      return;
    }
    const identity = data.identity;
    article.replaceChildren(
      el("div", { class: "bar" }, back, step(-1, "Previous"), step(1, "Next")),
      el("h2", { tabindex: "-1" }, entry.name, " ", badge(entry.verdict)),
      el("p", { class: "note" }, `basis: ${data.basis} · `, el("code", {}, data.folder)),
      ...reasons(data),
      ...[
        part("What happened", table(["fact", "value"], data.facts, "facts"), gauges(data)),
        part("Timeline", timeline(data)),
        part("Checks", table(["check", "status", "detail"], data.checks.map(([id, status, detail]) =>
          [id, el("span", { class: ["pass", "fail"].includes(status) ? status : "void" }, status), detail]))),
        workspace(data),
        listing("What the agent reported", ["line", "event", "content", "result"], data.events, "events"),
        listing("Model requests", ["line", "model", "request", "answer"], data.requests, "events"),
        ...outputs(data),
        part("Identity", identity.changed ? el("p", { class: "cut" }, "Changed during the trial.") : null,
          table(["file", "before", "after"], identity.rows), more(identity.rows.length, identity.total, "files")),
        part("Files of this trial", table(["file", "sha256"], data.files.map(([name, digest]) => [el("code", {}, name), el("code", {}, digest)])),
          more(data.files.length, data.files_total, "files")),
        part("Record", el("details", {}, el("summary", {}, "request and the consumer's own keys of trial.json"), ...excerpt(data.record))),
      ].filter(Boolean));
  }

  function open(entry) {
    location.hash = `#trial=${encodeURI(entry.name)}`;
  }

  function close() {
    history.replaceState(null, "", "#trials");
    route();
  }

  function route() {
    const hash = location.hash;
    if (hash.startsWith("#trial=")) {
      let name = hash.slice(7);
      try { name = decodeURIComponent(name); } catch { /* a hand-written address: taken as it is */ }
      const entry = byName.get(name);
      if (entry) {
        if (!overview.hidden) returnTo = document.activeElement;
        render(entry);
        overview.hidden = true;
        article.hidden = false;
        document.title = `${entry.verdict} ${entry.name}`;
        window.scrollTo(0, 0);
        article.querySelector("h2").focus({ preventScroll: true });
        return;
      }
    }
    const wasOpen = !article.hidden;
    if (hash !== "#trials") returnTo = null;
    article.hidden = true;
    article.replaceChildren();
    overview.hidden = false;
    document.title = pageTitle;
    if (wasOpen) {
      const target = document.getElementById(hash.slice(1)) || document.getElementById("trials");
      if (returnTo && returnTo.isConnected && returnTo !== document.body) {
        returnTo.focus();
        returnTo.scrollIntoView({ block: "center" });
      } else target.scrollIntoView();
    }
  }

  const inputs = ["text", "case", "verdict", "reason"].map((name) => document.getElementById(`f-${name}`));

  function filter() {
    const [words, caseId, verdict, reason] = inputs.map((input) => input.value);
    const needle = words.trim().toLowerCase();
    const escaped = JSON.stringify(needle).slice(1, -1).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
    shown = [];
    for (const entry of entries) {
      const fits = (!caseId || entry.caseId === caseId) && (!verdict || entry.verdict === verdict)
        && (!reason || entry.row.cells[3].textContent.split("; ").some((why) => why === reason || why.startsWith(`${reason}: `)))
        && (!needle || entry.text.includes(needle) || deep(entry).includes(escaped));
      entry.row.hidden = !fits;
      if (fits) shown.push(entry);
    }
    document.getElementById("f-count").textContent = `${shown.length} of ${entries.length} trials`;
  }

  function deep(entry) {
    if (entry.deep === null) entry.deep = blocks[entry.index].textContent.toLowerCase();
    return entry.deep;
  }

  function arrows(event) {
    const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    const move = moves[event.key];
    const cell = event.target.closest("td");
    if (!move || !cell || event.altKey || event.ctrlKey || event.metaKey) return;
    const line = grid.rows[cell.parentNode.rowIndex + move[0]];
    const next = line && line.cells[cell.cellIndex + move[1]];
    const link = next && next.querySelector("a");
    if (!link) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    link.tabIndex = 0;
    link.focus();
  }

  // One stop for the tab key in the whole grid; arrow keys move inside it.
  const grid = document.getElementById("grid");
  if (grid) {
    [...grid.querySelectorAll("a")].forEach((link, index) => { link.tabIndex = index ? -1 : 0; });
    grid.addEventListener("keydown", arrows);
  }
  if (entries.length) {
    document.getElementById("filters").hidden = false;
    inputs.forEach((input) => input.addEventListener("input", filter));
    document.getElementById("f-clear").addEventListener("click", () => {
      inputs.forEach((input) => { input.value = ""; });
      filter();
      inputs[0].focus();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !article.hidden) close();
  });
  window.addEventListener("hashchange", route);
  route();
})();
