import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

type JsonNode = Record<string | number, unknown>;

/** A value of a fixture file and what replaces it. */
export interface FixtureChange {
  readonly file: string;
  readonly path: readonly (string | number)[];
  readonly change: (value: never) => unknown;
}

/** Runs with a temporary folder of files. */
export async function withFiles<Result>(
  files: Readonly<Record<string, unknown>>,
  run: (folder: string) => Promise<Result>,
): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), "fixtures-"));
  try {
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), JSON.stringify(content));
    return await run(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Runs with a temporary folder that has one fixture file, after one of its values was changed. */
export async function withChangedFixture<Result>(
  fixtures: string,
  { file, path, change }: FixtureChange,
  run: (folder: string) => Promise<Result>,
): Promise<Result> {
  const fixture = JSON.parse(await readFile(join(fixtures, file), "utf8")) as JsonNode;
  const parent = path.slice(0, -1).reduce<JsonNode>((node, name) => node[name] as JsonNode, fixture);
  const last = path.at(-1)!;
  parent[last] = change(parent[last] as never);
  return withFiles({ [file]: fixture }, run);
}
