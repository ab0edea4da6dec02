import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { checkEnv } from "./check/check-env.js";
import "../text-world/index.js";
import { Env, type ResetOptions } from "./env.js";
import { registry } from "./registry/make.js";
import { Discrete } from "./spaces/discrete.js";
import { findLastNamedAction } from "./text-parsing.js";

const folder = new URL("../../docs/environments/", import.meta.url);
const HEADINGS = [
  "Description",
  "Action space",
  "Observation space",
  "Rewards",
  "Start",
  "End",
  "How it reads as text",
  "Random and best known return",
  "Arguments",
  "Versions",
];

const pages = readdirSync(folder)
  .filter((file) => file.endsWith(".md") && !["README.md", "bridges.md", "writing-your-own.md"].includes(file))
  .map((file) => ({ file, text: readFileSync(new URL(file, folder), "utf8") }));

describe("documentation of environments", () => {
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

describe("the guide's environment", () => {
  it("passes checkEnv", async () => {
    const code = readFileSync(new URL("writing-your-own.md", folder), "utf8").match(/```ts\n([\s\S]*?)```/)?.[1] ?? "";
    const body = code
      .replace(/^import.*$/m, "")
      .replace("export class", "return class")
      .replace(/^register\(.*$/m, "");
    // oxlint-disable-next-line typescript/no-implied-eval -- the guide's own code is what is tested
    const define = new Function("Env", "Discrete", "lastNamedAction", body) as (
      ...parts: unknown[]
    ) => new (o: ResetOptions) => Env;
    const CupsEnv = define(Env, Discrete, findLastNamedAction);
    expect(await checkEnv(new CupsEnv({}))).toEqual({ warnings: [] });
  });
});
