import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const dist = fileURLToPath(new URL("../dist/", import.meta.url));

/** Files of the package that an entry point loads. */
function listLoaded(entry: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), "entry-"));
  try {
    const program = `await import(${JSON.stringify(new URL(`../dist/${entry}`, import.meta.url).href)})`;
    execFileSync(process.execPath, ["--input-type=module", "-e", program], {
      env: { ...process.env, NODE_V8_COVERAGE: folder },
    });
    const results = readdirSync(folder).flatMap((name) => {
      const { result } = JSON.parse(readFileSync(join(folder, name), "utf8")) as { result: { url: string }[] };
      return result.filter(({ url }) => url.startsWith("file:")).map(({ url }) => fileURLToPath(url));
    });
    return [...new Set(results)].filter((path) => path.startsWith(dist)).map((path) => path.slice(dist.length));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Names of values and types that a declaration file exports. */
function listNames(path: string): string[] {
  const text = readFileSync(path, "utf8");
  const named = Array.from(text.matchAll(/^export (?:type )?\{([^}]*)\}/gm), ([, names]) => names.split(","))
    .flat()
    .map((name) =>
      name
        .trim()
        .replace(/^type /, "")
        .split(" as ")
        .at(-1)!,
    )
    .filter((name) => name !== "");
  const declared = Array.from(
    text.matchAll(/^export (?:declare )?(?:abstract )?(?:const|function|class|interface|type|async function) (\w+)/gm),
    ([, name]) => name,
  );
  const namespaces = Array.from(text.matchAll(/^export \* as (\w+)/gm), ([, name]) => name);
  const others = Array.from(text.matchAll(/^export \* from "(\.[^"]+)\.js"/gm), ([, file]) =>
    listNames(join(dirname(path), `${file}.d.ts`)),
  );
  return [...new Set([...named, ...declared, ...namespaces, ...others.flat()])];
}

describe("import from llamagym", () => {
  const loaded = listLoaded("index.js");

  it("loads neither runs and servers, nor bridges, nor text worlds", () => {
    expect(loaded.length).toBeGreaterThan(100);
    expect(loaded.filter((path) => /^(app|text-world)\//.test(path))).toEqual([]);
    expect(loaded.filter((path) => path.startsWith("envs/bridges/"))).toEqual(["envs/bridges/register-openers.js"]);
    expect(loaded.length).toBeLessThanOrEqual(625);
  });

  it("loads modules of Node.js in one folder only", () => {
    const others = loaded.filter((path) => !path.startsWith("core/platform/node/"));
    expect(others.filter((path) => /from "(node:|ws")/.test(readFileSync(join(dist, path), "utf8")))).toEqual([]);
  });

  it("has at most 190 names", () => {
    const names = listNames(join(dist, "index.d.ts"));
    expect(names).toContain("Trainer");
    expect(names).toContain("TrainerOptions");
    expect(names.length).toBeLessThanOrEqual(190);
  });
});
