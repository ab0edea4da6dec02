import { command } from "./command.js";
import { findings, type Finding } from "./findings.js";
import { print, table } from "./output.js";
import type { OptionTable } from "./options.js";

const options = {
  json: { type: "flag", description: "print one JSON object" },
} as const satisfies OptionTable;

export const doctorCommand = command(
  "doctor",
  "Check this machine: devices, memory, cache, network, versions",
  options,
  async ({ json }) => {
    const all = await findings();
    if (json) print(JSON.stringify({ findings: all }));
    else printFindings(all);
    // What is missing is told; only what makes the library useless is a failure.
    return all.some(({ state }) => state === "broken") ? 1 : 0;
  },
);

const MARKS = { ok: "ok", note: "-", missing: "missing", broken: "BROKEN" } as const;

function printFindings(all: readonly Finding[]): void {
  print(table(all.map(({ state, name, value }) => [MARKS[state], name, value])));
  const advice = all.filter(({ advice }) => advice !== undefined);
  if (advice.length > 0) print("");
  for (const { name, advice: text } of advice) print(`${name}: ${text}`);
}
