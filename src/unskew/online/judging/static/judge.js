// Answers by key, and small comforts. Without this file the pages work by their forms alone.
"use strict";

(() => {
  // A key or click that was meant for the page before must not answer a question nobody has seen.
  const SETTLE_MS = 300;
  const ARROWS = { ArrowLeft: "1", ArrowRight: "4" };
  const shownAt = performance.now();
  let sent = false;

  const remembered = (key) => {
    try { return localStorage.getItem(key); } catch { return null; }
  };
  const remember = (key, value) => {
    try { localStorage.setItem(key, value); } catch { /* private windows refuse */ }
  };

  // A live region speaks when its text changes, so the text comes after the page.
  const announce = document.getElementById("announce");
  if (announce) setTimeout(() => { announce.textContent = announce.dataset.text; }, 100);

  for (const form of document.querySelectorAll("#answer, #undo")) {
    form.addEventListener("submit", (event) => {
      if (sent || performance.now() - shownAt < SETTLE_MS) {
        event.preventDefault();
        return;
      }
      sent = true;
      event.submitter?.classList.add("pressed");
    });
  }
  // The browser may show this very page again when one goes back.
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  const shortcuts = document.getElementById("shortcuts");
  if (shortcuts) {
    shortcuts.closest("label").hidden = false;
    shortcuts.checked = remembered("unskew-judge-shortcuts") !== "off";
    shortcuts.addEventListener("change", () => {
      remember("unskew-judge-shortcuts", shortcuts.checked ? "on" : "off");
    });
  }

  const reason = document.getElementById("reason");
  const grow = () => {
    reason.rows = Math.min(4, reason.value.split("\n").length);
  };
  if (reason) {
    reason.addEventListener("input", grow);
    grow();
  }

  addEventListener("keydown", (event) => {
    if (event.target === reason) {
      if (event.key === "Escape") reason.blur();
      return;
    }
    const typing = event.target.matches?.("input[type=text], select, textarea");
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    if (typing || modified || event.repeat || (shortcuts && !shortcuts.checked)) return;
    const key = ARROWS[event.key] ?? event.key.toLowerCase();
    if (key === "r" && reason) {
      event.preventDefault();
      reason.focus();
      return;
    }
    const button = document.querySelector(`button[data-key="${CSS.escape(key)}"]:not(:disabled)`);
    if (!button) return;
    event.preventDefault();
    button.form.requestSubmit(button);
  });

  // The same document on both sides lights up together.
  const results = [...document.querySelectorAll(".result[data-doc]")];
  const light = (doc, on) => {
    for (const result of results) result.classList.toggle("twin", on && result.dataset.doc === doc);
  };
  for (const result of results) {
    if (result.classList.contains("alone")) continue;
    for (const [name, on] of [["mouseenter", true], ["mouseleave", false], ["focusin", true], ["focusout", false]]) {
      result.addEventListener(name, () => light(result.dataset.doc, on));
    }
  }

  // On a narrow screen the guidelines are below the lists and closed until asked for.
  const guidelines = document.getElementById("guidelines");
  if (guidelines) {
    const kept = remembered("unskew-judge-guidelines");
    guidelines.open = kept === null ? matchMedia("(min-width: 62rem)").matches : kept === "open";
    guidelines.querySelector("summary").addEventListener("click", () => {
      remember("unskew-judge-guidelines", guidelines.open ? "closed" : "open");
    });
  }

  document.documentElement.dataset.ready = "yes";
})();
