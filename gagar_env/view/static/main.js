// Starts the page: which run, which group, and what the address says of them.
import { el, show } from "./inert.js";
import { GroupPage, TABS } from "./group.js";
import { fillHelp, listen } from "./keys.js";
import { GroupList } from "./list.js";
import { counted } from "./numbers.js";
import { showOverview } from "./overview.js";
import { load, offline } from "./source.js";

const byId = (id) => document.getElementById(id);
const AGAIN_S = { reading: 1.5, resting: 5 };

class Page {
  constructor() {
    this.run = 0;
    this.group = null;
    this.seen = "";
    this.list = new GroupList({ filters: byId("filters"), count: byId("count"), groups: byId("groups"), pager: byId("list-pager") }, (number) => this.openGroup(number));
    this.page = new GroupPage(byId("main"), () => this.remember());
  }

  async start() {
    const all = await load("runs");
    this.runs = all.runs;
    const switcher = byId("run");
    show(switcher, this.runs.map((run, number) => el("option", { value: String(number) }, run.name)));
    byId("switch").hidden = this.runs.length < 2;
    switcher.addEventListener("change", () => this.openRun(Number(switcher.value)));
    show(byId("note"), leftOut(all));
    fillHelp(byId("help"));
    byId("help-button").addEventListener("click", () => byId("help").showModal());
    byId("overview-button").addEventListener("click", () => this.openOverview());
    listen(this.actions(), byId("help"));
    window.addEventListener("unhandledrejection", (event) => show(byId("note"), el("span", { class: "warn" }, `this cannot be shown: ${event.reason?.message ?? event.reason}`)));
    window.addEventListener("hashchange", () => this.follow());
    await this.follow();
    if (!offline) this.again(AGAIN_S.reading);
  }

  actions() {
    const tabs = Object.fromEntries(TABS.map((name, at) => [String(at + 1), () => this.page.open_tab(name)]));
    return {
      ...tabs,
      j: () => this.list.step(1),
      k: () => this.list.step(-1),
      ArrowRight: () => this.page.step(1, 0),
      ArrowLeft: () => this.page.step(-1, 0),
      "Shift ArrowRight": () => this.page.step(1, 1),
      "Shift ArrowLeft": () => this.page.step(-1, 1),
      x: () => this.page.group && this.page.choose(this.page.chosen[1], 0),
      o: () => this.openOverview(),
      r: () => this.runs.length > 1 && this.openRun((this.run + 1) % this.runs.length),
      "/": () => this.list.search.focus(),
      "?": () => byId("help").showModal(),
    };
  }

  // What the address names: #run/group/left/right/tab, numbers and a known word only.
  async follow() {
    const parts = location.hash.slice(1).split("/");
    if (location.hash.slice(1) === this.seen && this.overview) return;
    const numbers = parts.slice(0, 4).map((part) => (/^\d{1,9}$/.test(part) ? Number(part) : null));
    await this.openRun(numbers[0] !== null && numbers[0] < this.runs.length ? numbers[0] : 0, numbers[1], numbers[2] === null || numbers[3] === null || numbers[3] === undefined ? null : [numbers[2], numbers[3]], parts[4]);
  }

  async openRun(run, group = null, chosen = null, tab = null) {
    if (run !== this.run || !this.overview) {
      this.list.reset();
      this.run = run;
      byId("run").value = String(run);
      await this.refresh();
    }
    if (group === null || group === undefined) this.openOverview();
    else await this.openGroup(group, chosen, tab);
  }

  async refresh() {
    const run = this.run;
    const [overview, rows] = await Promise.all([load(`run/${run}`), load(`run/${run}/rows`)]);
    if (run !== this.run) return;
    this.overview = overview;
    show(byId("where"), this.runs[run].path);
    this.list.take(rows);
    if (this.group === null) this.drawOverview();
  }

  drawOverview() {
    showOverview(byId("main"), this.overview, this.runs, (number) => this.openRun(number));
  }

  openOverview() {
    this.group = null;
    this.page.group = null;
    this.page.turn += 1;
    this.list.mark(null);
    this.drawOverview();
    this.remember();
    window.scrollTo(0, 0);
  }

  async openGroup(number, chosen = null, tab = null) {
    const other = number !== this.group;
    this.group = number;
    this.list.mark(number);
    await this.page.open(this.run, number, chosen, tab);
    if (other) {
      byId("main").scrollTo(0, 0);
      byId("status").textContent = `Group ${number}`;
    }
  }

  remember() {
    const { chosen, tab } = this.page;
    this.seen = this.group === null ? `${this.run}` : [this.run, this.group, ...chosen, tab].join("/");
    history.replaceState(null, "", `#${this.seen}`);
    document.title = this.group === null ? "gagar view" : `#${this.group} \u2013 gagar view`;
  }

  // A run that is being written grows: look again, more often while episodes are being read.
  again(wait) {
    setTimeout(async () => {
      let next = AGAIN_S.resting;
      try {
        if (!document.hidden) {
          const found = await load(`run/${this.run}`);
          const changed = found && (found.groups !== this.overview.groups || found.read !== this.overview.read || found.steps !== this.overview.steps);
          if (changed) await this.refresh();
          if (found && found.read < found.groups) next = AGAIN_S.reading;
        }
        show(byId("note"));
      } catch {
        show(byId("note"), el("span", { class: "warn" }, "the server does not answer"));
      }
      this.again(next);
    }, wait * 1000);
  }
}

function leftOut(all) {
  const left = Object.entries(all.left_out ?? {});
  if (!offline) return null;
  return left.length ? el("span", { class: "warn", title: `The data in this file are limited to ${all.most_mb} MB.` }, `left out of this file: ${left.map(([what, count]) => `${counted(count)} ${what}`).join(", ")}`) : "one file, complete";
}

new Page().start().catch((error) => {
  show(byId("main"), el("p", { class: "banner warn" }, `The page could not be drawn: ${error.message}`));
});
