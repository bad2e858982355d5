/* The button that changes between light and dark; without scripts the page follows the system. */
(() => {
  const button = document.querySelector("button.theme");
  const root = document.body;
  const dark = () => root.classList.contains("uk-dark")
    || (!root.classList.contains("uk-light") && matchMedia("(prefers-color-scheme: dark)").matches);
  const name = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    const next = !dark();
    root.classList.toggle("uk-dark", next);
    root.classList.toggle("uk-light", !next);
    name();
  });
  // Paper is white.
  let before = "";
  addEventListener("beforeprint", () => { before = root.className; root.classList.remove("uk-dark"); root.classList.add("uk-light"); });
  addEventListener("afterprint", () => { root.className = before; });
  button.hidden = false;
  name();
})();
