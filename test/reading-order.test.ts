import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = new URL("..", import.meta.url);

/** Lines that are all of an algorithm, which one can read at one sitting. */
const MAX_LINES = 400;

interface Row {
  readonly name: string;
  readonly file: string;
}

/** Rows of a page's table of functions. */
async function readRows(page: string): Promise<Row[]> {
  const text = await readFile(fileURLToPath(new URL(`docs/algorithms/${page}.md`, root)), "utf8");
  const rows = text.matchAll(
    /^\| `(\w+)` +\| \[([^\]]+)\]\(https:\/\/github\.com\/[^)]*\/blob\/main\/(src\/[^)]+)\)/gm,
  );
  return Array.from(rows, ([, name, label, file]) => {
    expect(file.endsWith(`/${label}`)).toBe(true);
    return { name, file };
  });
}

/**
 * Returns the lines of a function, method or constant, with its docstring; throws for one that the
 * file does not declare.
 */
async function readDeclaration({ name, file }: Row): Promise<string[]> {
  const lines = (await readFile(fileURLToPath(new URL(file, root)), "utf8")).split("\n");
  const declaration = new RegExp(
    `^(?:(?:export )?(?:async )?(?:function |const )|  (?:private )?(?:async )?)${name}(?=[(<:]| =)`,
  );
  const first = lines.findIndex((line) => declaration.test(line));
  if (first < 0) throw new Error(`${file} does not declare ${name}.`);
  const indent = /^ */.exec(lines[first])![0];
  const last = lines.findIndex((line, i) => i > first && [`}`, `};`, `});`].some((end) => line === indent + end));
  let start = first;
  while (/^ *(\/\*\*| \*)/.test(lines[start - 1])) start--;
  return lines.slice(start, last + 1);
}

it.each(["ppo", "grpo", "rloo", "reinforce"])("%s.md names functions that are all of the algorithm", async (page) => {
  const rows = await readRows(page);
  expect(rows.length).toBeGreaterThanOrEqual(10);
  expect(new Set(rows.map(({ name, file }) => `${file} ${name}`)).size).toBe(rows.length);
  const declarations = await Promise.all(rows.map(readDeclaration));
  for (const lines of declarations) expect(lines.length).toBeGreaterThan(2);
  expect(declarations.flat().length).toBeLessThanOrEqual(MAX_LINES);
});

it("rejects a function that its file does not declare", async () => {
  await expect(readDeclaration({ name: "trpo", file: "src/rl/algorithms/ppo/ppo.ts" })).rejects.toThrow(
    "does not declare trpo",
  );
});
