import { buildCommand } from "../options/build-command.js";
import { diagnostics, type Diagnostic } from "../diagnostics.js";
import { print, formatTable } from "../display/output.js";
import type { OptionTable } from "../options/parse-args.js";

const options = {
  json: { type: "flag", description: "print one JSON object" },
} as const satisfies OptionTable;

export const doctorCommand = buildCommand(
  "doctor",
  "Check this machine: devices, memory, cache, network, versions",
  options,
  async ({ json }) => {
    const results = await diagnostics();
    if (json) print(JSON.stringify({ findings: results }));
    else printDiagnostics(results);
    // What is missing is told; only what makes the library useless is a failure.
    return results.some(({ state }) => state === "broken") ? 1 : 0;
  },
);

const STATE_LABELS = { ok: "ok", note: "-", missing: "missing", broken: "BROKEN" } as const;

function printDiagnostics(results: readonly Diagnostic[]): void {
  print(formatTable(results.map(({ state, name, value }) => [STATE_LABELS[state], name, value])));
  const advice = results.filter(({ advice }) => advice !== undefined);
  if (advice.length > 0) print("");
  for (const { name, advice: text } of advice) print(`${name}: ${text}`);
}
