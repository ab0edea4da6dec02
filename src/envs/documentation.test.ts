import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import "../text-world/index.js";
import { registry } from "./registry/make.js";

const folder = new URL("../../docs/environments/", import.meta.url);
const HEADINGS = [
  "Description",
  "Action space",
  "Observation space",
  "Rewards",
  "Start",
  "End",
  "Text interface",
  "Random and best known return",
  "Arguments",
  "Versions",
];

const pages = readdirSync(folder)
  .filter(
    (file) =>
      file.endsWith(".md") && !["README.md", "bridges.md", "writing-a-game.md", "writing-your-own.md"].includes(file),
  )
  .map((file) => ({ file, text: readFileSync(new URL(file, folder), "utf8") }));

describe("pages on environments", () => {
  it.each(registry.all().map(({ id }) => id))("has one page on %s", (id) => {
    const about = pages.filter(({ text }) => text.split("\n")[2].includes(`\`${id}\``));
    expect(about.map(({ file }) => file)).toHaveLength(1);
  });

  it.each(pages)("has the same headings on every page: $file", ({ text }) => {
    expect(text.match(/^## .*$/gm)?.map((line) => line.slice(3))).toEqual(HEADINGS);
  });

  it.each(registry.all())("states the known returns of $id", ({ id, knownReturns }) => {
    const { random, best } = knownReturns!;
    const page = pages.find(({ text }) => text.split("\n")[2].includes(`\`${id}\``))?.text ?? "";
    const returns = page.slice(page.indexOf("## Random and best"), page.indexOf("## Arguments"));
    const numbers = (returns.match(/-?\d[\d,]*(\.\d+)?/g) ?? []).map((number) => Number(number.replaceAll(",", "")));
    const near = (value: number) => numbers.some((number) => Math.abs(number - value) <= 0.001 * Math.abs(value));
    expect([near(random), near(best)]).toEqual([true, true]);
  });
});
