import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand, runInHost } from "./support/command.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = readFileSync(join(root, "docs/environments/writing-your-own.md"), "utf8");
const example = readFileSync(join(root, "examples/own-env.ts"), "utf8");
const blocks = Array.from(page.matchAll(/```ts[^\n]*\n([\s\S]*?)```/g), ([, code]) => code);

/** The flags that `tsc --init` writes. */
const TSC_INIT_FLAGS = [
  "--module nodenext --target esnext --strict --noUncheckedIndexedAccess --exactOptionalPropertyTypes --isolatedModules",
  "--verbatimModuleSyntax --noUncheckedSideEffectImports --moduleDetection force --skipLibCheck --types node --ignoreConfig",
].flatMap((flags) => flags.split(" "));

/** A folder inside the package, where "llamagym" is the built package itself. */
let folder: string;
beforeAll(() => {
  mkdirSync(join(root, "examples/.build"), { recursive: true });
  folder = mkdtempSync(join(root, "examples/.build/own-env-"));
  writeFileSync(join(folder, "own-env.ts"), blocks[0]);
  writeFileSync(join(folder, "check.ts"), blocks[1]);
});
afterAll(() => rmSync(folder, { recursive: true }));

function run(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  return { status, out: stdout, err: stderr };
}

const llamagym = (...args: readonly string[]) => runInHost(args, { cwd: folder });

describe("the guide to writing an environment", () => {
  it("shows the example", () => {
    expect(example.slice(example.indexOf("import {"))).toBe(blocks[0]);
  });

  it("compiles with the flags of tsc --init, and passes checkEnv", () => {
    const compiler = createRequire(import.meta.url)
      .resolve("typescript/package.json")
      .replace("package.json", "bin/tsc");
    expect(run(compiler, ...TSC_INIT_FLAGS, "own-env.ts", "check.ts")).toMatchObject({ status: 0, out: "" });
    expect(run("check.js")).toMatchObject({ status: 0, out: "[]\n" });
  });

  it.each([
    ["./own-env.js", "Cups-v0"],
    ["./own-env.js:Cups-v0", "Cups-v0"],
    ["./own-env.js#CupsEnv", "own-env.js#CupsEnv"],
  ])("is described by llamagym envs %s", async (reference, id) => {
    const { status, out } = await llamagym("envs", reference);
    expect(status).toBe(0);
    expect(out).toMatch(new RegExp(`^id .*${id}$`, "m"));
    expect(out).toContain("left, middle, right");
  });

  it("is found by --env-module, records demonstrations by its expert, and is trained by a run that resumes elsewhere", async () => {
    const demoArgs = "demos cups --env-module own-env.js --episodes 4 --output demos.jsonl".split(" ");
    // In a process that has not loaded the module yet.
    const demos = await runCommand(demoArgs, { cwd: folder });
    expect(demos).toMatchObject({ status: 0 });
    expect(demos.out).toContain("4 episodes, 4 turns, mean return 1.000");
    const options = "--env-module own-env.js --episodes 32 --batch-size 32 --num-ppo-epochs 1 --output run".split(" ");
    const trained = await llamagym("train", "cups", ...options);
    expect(trained).toMatchObject({ status: 0 });
    const config = JSON.parse(readFileSync(join(folder, "run/config.json"), "utf8")) as { env: string };
    expect(config.env).toBe(`${join(folder, "own-env.js")}:Cups-v0`);
    const resumed = await runCommand(["train", "--resume", join(folder, "run"), "--episodes", "64"], { cwd: tmpdir() });
    expect(resumed).toMatchObject({ status: 0 });
  });

  it("runs as TypeScript, with modules that it imports as JavaScript and with syntax that Node.js does not strip", async () => {
    writeFileSync(
      join(folder, "cups.ts"),
      "export enum Cup { Left = 1, Middle = 2 }\nexport type Cups = readonly Cup[];\n",
    );
    const typed = `import { type Cups, Cup } from "./cups.js";
      import { CupsEnv } from "./typed-cups.js";
      export default class TwoCups extends CupsEnv {
        constructor(_options: object, private readonly cups: Cups = [Cup.Left, Cup.Middle]) {
          super();
          console.error(\`cups: \${this.cups}\`);
        }
      }`;
    writeFileSync(join(folder, "typed-cups.ts"), blocks[0].replace(/^register\([^]*/m, ""));
    writeFileSync(join(folder, "typed-env.ts"), typed);
    const { status, err } = await runCommand(
      "train ./typed-env.ts --episodes 16 --batch-size 16 --num-ppo-epochs 1 --output typed".split(" "),
      { cwd: folder },
    );
    expect(err).toContain("cups: 1,2");
    expect(status).toBe(0);
    expect((await runCommand(["envs", "./own-env.ts"], { cwd: folder })).out).toMatch(/^id .*Cups-v0$/m);
  });

  it.each([
    ["./missing.js", /missing\.js failed to import: Cannot find module/],
    ["./missing.ts", /missing\.ts failed to import: Cannot find module/],
    ["./plain.js", /The export "default" of .*plain\.js is a class that does not extend llamagym's Env/],
    ["./own-env.js#Nothing", /the export "Nothing" is not an environment/],
    ["./own-env.js:Cups-v1", /Environment version `v1` for environment `Cups` doesn't exist/],
    ["./empty.js", /exports no environment/],
  ])("refuses %s", async (reference, message) => {
    writeFileSync(join(folder, "empty.js"), "export const nothing = 1;\n");
    writeFileSync(join(folder, "plain.js"), "export default class Plain { reset() {} step() {} }\n");
    const { status, err } = await llamagym("envs", reference);
    expect(status).toBe(1);
    expect(err).toMatch(message);
  });
});
