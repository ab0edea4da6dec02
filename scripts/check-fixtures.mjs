// Runs the generators of test/fixtures/text again, which ask TRL, Transformers, tokenizers and
// jinja2, and compares their results with the files that tests compare llamagym with.
// usage: node scripts/check-fixtures.mjs PYTHON [GENERATOR ...]; PYTHON has trl, torch and datasets
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const stored = fileURLToPath(new URL("../test/fixtures/text", import.meta.url));
const all = readdirSync(stored).filter((name) => name.endsWith(".py"));
const [python = "python3", ...given] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "fixtures-"));
cpSync(stored, folder, { recursive: true });
for (const generator of given.length > 0 ? given : all) {
  const env = { ...process.env, HF_HUB_OFFLINE: "1", TQDM_DISABLE: "1", HF_DATASETS_DISABLE_PROGRESS_BARS: "1" };
  const { status, stderr } = spawnSync(python, [join(folder, generator)], { encoding: "utf8", env });
  if (status !== 0) throw new Error(`${generator} failed:\n${stderr.slice(-2000)}`);
}
/** Versions and the day of the generator differ; some templates print the day. */
const read = (path) => {
  const { versions: _versions, date: _date, ...values } = JSON.parse(readFileSync(path, "utf8"));
  return JSON.stringify(values);
};
const files = readdirSync(stored).filter((name) => name.endsWith(".json"));
for (const name of files) {
  const isEqual = read(join(folder, name)) === read(join(stored, name));
  console.log(`${isEqual ? "equal" : "DIFFERENT"}\t${name}`);
  if (!isEqual) process.exitCode = 1;
}
rmSync(folder, { recursive: true });
