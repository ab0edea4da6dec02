import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** Path of a file in test/fixtures; drivers run in the repository's root. */
export function fixturePath(...names: readonly string[]): string {
  return join(resolve("test", "fixtures"), ...names);
}

export function readFixture(...names: readonly string[]): Buffer<ArrayBuffer> {
  return readFileSync(fixturePath(...names));
}

export function readJsonFixture(...names: readonly string[]): unknown {
  return JSON.parse(readFixture(...names).toString()) as unknown;
}
