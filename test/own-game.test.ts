import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runInHost } from "./support/command.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = readFileSync(join(root, "docs/environments/writing-a-game.md"), "utf8");
const example = readFileSync(join(root, "examples/own-game.ts"), "utf8");
const [code, , check] = Array.from(page.matchAll(/```ts[^\n]*\n([\s\S]*?)```/g), ([, block]) => block);

/** A folder inside the package, where "llamagym" is the built package itself. */
let folder: string;
beforeAll(() => {
  mkdirSync(join(root, "examples/.build"), { recursive: true });
  folder = mkdtempSync(join(root, "examples/.build/own-game-"));
  writeFileSync(join(folder, "own-game.ts"), code);
  writeFileSync(join(folder, "check.ts"), check);
  const compiler = createRequire(import.meta.url)
    .resolve("typescript/package.json")
    .replace("package.json", "bin/tsc");
  const flags = "--module nodenext --target esnext --strict --skipLibCheck --types node --ignoreConfig --noCheck";
  spawnSync(process.execPath, [compiler, ...flags.split(" "), "own-game.ts", "check.ts"], { cwd: folder });
});
afterAll(() => rmSync(folder, { recursive: true }));

const llamagym = (...args: readonly string[]) => runInHost(args, { cwd: folder });

describe("the guide to writing a game", () => {
  it("shows the example, which passes checkGame", () => {
    expect(example.slice(example.indexOf("import {"))).toBe(code);
    expect(spawnSync(process.execPath, ["check.js"], { cwd: folder, encoding: "utf8" })).toMatchObject({
      status: 0,
      stderr: "",
    });
  });

  it("trains the game by self-play, and evaluates it exactly and against opponents", async () => {
    const train = "train ./own-game.js --self-play --turns 512 --threads 1 --rollouts none --sft-warm-start none";
    expect(await llamagym(...train.split(" "), "--output", "run")).toMatchObject({ status: 0 });
    const exact = await llamagym("eval", "./own-game.js", "--adapter", "run/adapter", "--exact");
    expect(exact.out).toMatch(/against minimax +second/);
    expect(exact.out).toMatch(/NashConv \d/);
    const fixed = "train ./own-game.js#StonesGame -o opponent=minimax -o seat=1 --turns 64 --sft-warm-start none";
    expect(await llamagym(...fixed.split(" "), "--output", "fixed")).toMatchObject({ status: 0 });
  });

  it("refuses options that neither the game nor its environment has", async () => {
    const { status, err } = await llamagym("envs", "./own-game.js", "-o", "opponents=minimax");
    expect(status).toBe(1);
    expect(err).toContain('StonesGame has no option "opponents"');
    const unknown = await llamagym("envs", "./own-game.js", "-o", "opponent=best");
    expect(unknown.err).toContain('option opponent must be "random", "minimax" or a function, got "best"');
  });
});
