import "./style.css";
import { type PageData, readPage } from "./data";
import { h, outside } from "./dom";
import { folderView } from "./folders";
import { keepPlace } from "./keep";
import { follow } from "./live";
import { scanView, type View } from "./scan/view";
import { studyView } from "./study/view";
import { forgetListeners, isDark, onTheme, toggleTheme } from "./theme";

const newestSchema = 2;

function themeButton(): HTMLElement {
  const button = h("button", { type: "button", class: "theme", onclick: toggleTheme });
  const label = (): void => {
    button.textContent = isDark() ? "☀" : "☾";
    button.setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
  };
  label();
  onTheme(label);
  return button;
}

let views: View[] = [];

/** What comes first is on the screen before the rest is drawn; `whole` draws all of it at once, over what was there. */
function draw(app: HTMLElement, data: PageData, whole: boolean): void {
  if (data.schema > newestSchema) {
    app.replaceChildren(h("p", { class: "message" }, `These results have schema ${data.schema}; this page reads up to ${newestSchema}.`));
    return;
  }
  forgetListeners();
  views = [];
  if (data.folders.length > 0) views.push(folderView(data.folders));
  if (data.scans.length > 0) views.push(scanView(data.scans, data.diff));
  if (data.studies.length > 0) views.push(studyView(data.studies));
  const title = views.map((v) => v.title).join(" · ") || "Nothing yet";
  document.title = `${title} – Rankscope`;
  const sections = views.flatMap((v) => v.sections);
  const linked = sections.flatMap((s) => (s.id ? [s] : ([...s.children] as HTMLElement[])));
  const main = h("main", {}, ...(whole ? sections : sections.slice(0, 1)));
  app.replaceChildren(
    h("a", { class: "skip", href: `#${linked[0]?.id ?? ""}` }, "Skip to the results"),
    h("header", {}, h("div", {}, h("p", { class: "brand" }, "Rankscope"), h("h1", {}, h("bdi", {}, title)), h("p", { class: "quiet" }, views.map((v) => v.subtitle).join(" · "))), themeButton()),
    h("nav", { "aria-label": "Sections" }, ...linked.map((s) => h("a", { href: `#${s.id}` }, s.querySelector("h2")?.textContent ?? s.id))),
    main,
    h("footer", {}, `rankscope ${outside(data.rankscope)} · ${data.live ? "follows the folder as it changes" : "everything on this page is in this one file"}`),
  );
  const finish = (): void => {
    main.append(...sections.slice(main.children.length));
    app.dataset["ready"] = "";
    navigate();
  };
  if (whole) finish();
  else requestAnimationFrame(() => setTimeout(finish));
}

/** To what the address names: something a view knows, or a section, which may have come after the browser looked for it. */
function navigate(): void {
  if (location.hash && !views.some((v) => v.navigate(location.hash))) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

function start(): void {
  const app = document.getElementById("app");
  if (!app) return;
  const data = readPage();
  if (!data) {
    app.append(h("p", { class: "message" }, "This is the report's empty page: rankscope report DIR fills it with results."));
    return;
  }
  draw(app, data, false);
  window.addEventListener("hashchange", navigate);
  if (data.live)
    follow((fresh) => {
      const putBack = keepPlace();
      draw(app, fresh, true);
      putBack();
    });
}

start();
